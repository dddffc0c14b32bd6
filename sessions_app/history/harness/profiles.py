"""Harness profiles: named sets of tolerances, for matching only.

Invariant: a profile changes what counts as the same history, never what is stored or fed. It takes effect
only when a session names it (or `auto` is set); detecting a harness is a label and loosens nothing.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from sessions_app.history.harness.tolerances import TOLERANCES, Tolerance, cut_pattern
from sessions_app.history.matchers.base import Message


@dataclass(frozen=True, slots=True)
class Canonical:
    """A message as a profile compares it."""

    message: Message
    rules: tuple[str, ...]
    """`profile/tolerance` of every tolerance that changed it, in order."""


@dataclass(frozen=True, slots=True)
class HarnessProfile:
    """What one harness does to the history it replays."""

    name: str
    tolerances: tuple[Tolerance, ...]

    def form(self, message: Message) -> Message:
        """The message as it is compared."""
        for tolerance in self.tolerances:
            message = tolerance.form(message)
        return message

    def canonicalise(self, message: Message) -> Canonical:
        """The same, saying which tolerances had something to do."""
        rules = []
        for tolerance in self.tolerances:
            changed = tolerance.form(message)
            if changed != message:
                rules.append(self.rule(tolerance))
            message = changed
        return Canonical(message, tuple(rules))

    @property
    def lets_pass(self) -> bool:
        """Whether any message may come and go."""
        return any(tolerance.passes is not None for tolerance in self.tolerances)

    def passes(self, message: Message) -> bool:
        """Whether a message may come and go: it takes no part in matching."""
        return any(tolerance.lets_pass(message) for tolerance in self.tolerances)

    def passing_rules(self, message: Message) -> list[str]:
        """The tolerances by which it may."""
        return [self.rule(tolerance) for tolerance in self.tolerances if tolerance.lets_pass(message)]

    def without(self, tolerance: Tolerance) -> "HarnessProfile":
        """The profile with one tolerance less."""
        return HarnessProfile(self.name, tuple(each for each in self.tolerances if each is not tolerance))

    def rule(self, tolerance: Tolerance) -> str:
        """The name by which events call a tolerance of this profile."""
        return f"{self.name}/{tolerance.name}"


def _profile(name: str, *names: str) -> HarnessProfile:
    return HarnessProfile(name, tuple(each for each in TOLERANCES.values() if each.name in names))


_ANTHROPIC = ("cache-control", "text-parts", "call-ids", "read-arguments", "respelled-arguments")
_REPRINTED = ("text-parts", "dropped-reasoning", "null-call-fields", "read-arguments", "respelled-arguments")
"""What frameworks do that keep messages in a form of their own and print them anew."""

_BUILT_IN = (
    _profile("anthropic", *_ANTHROPIC),
    _profile("claude-code", "billing-header", "system-reminders", *_ANTHROPIC),
    _profile("openai-agents", "dropped-reasoning"),
    _profile("pydantic-ai", *_REPRINTED),
    _profile("codex", "text-parts", "dropped-reasoning"),
    _profile("opencode", *_REPRINTED),
    _profile("qwen-code", *_REPRINTED),
    _profile("langgraph", *_REPRINTED),
    _profile("strands", *_REPRINTED),
    _profile("smolagents", "told-calls", *_REPRINTED),
    _profile("openai-sdk", "told-calls", *_REPRINTED),
)

BUILT_IN_PROFILES: Mapping[str, HarnessProfile] = MappingProxyType({each.name: each for each in _BUILT_IN})


def define_profile(name: str, rules: Sequence[Any]) -> HarnessProfile:
    """A profile from settings: names of tolerances, and objects with `name`, `cut` (a pattern), `roles` and
    perhaps `passes`.

    Raises ValueError, which names the bad rule.
    """
    named = [rule for rule in rules if isinstance(rule, str)]
    unknown = [rule for rule in named if rule not in TOLERANCES]
    if unknown:
        raise ValueError(f"harness profile {name!r}: unknown tolerance {unknown[0]!r}; use one of {_names()}")
    cuts = [_cut(name, rule) for rule in rules if not isinstance(rule, str)]
    return HarnessProfile(name, (*cuts, *_profile(name, *named).tolerances))


def _cut(profile: str, rule: Any) -> Tolerance:
    try:
        return cut_pattern(rule["name"], rule["cut"], rule["roles"], passes=bool(rule.get("passes")))
    except (TypeError, KeyError) as error:
        raise ValueError(
            f"harness profile {profile!r}: a rule needs name, cut and roles, got {rule!r}"
        ) from error
    except re.error as error:
        raise ValueError(f"harness profile {profile!r}: {rule['cut']!r} is no pattern: {error}") from error


def _names() -> str:
    return ", ".join(TOLERANCES)
