"""What requests are replayed under: the session's own settings, with some of them changed."""

from collections.abc import Mapping
from dataclasses import dataclass

from sessions_app.history.harness.matcher import HarnessMatcher
from sessions_app.history.harness.profiles import HarnessProfile
from sessions_app.history.matchers.base import MessageMatcher
from sessions_app.history.matchers.linear_form import LINEAR_FORM, uses_linear_form
from sessions_app.history.matchers.registry import resolve_matcher

NO_HARNESS = "none"
"""Name that switches a session's harness profile off."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What is to be changed; None leaves a setting as the session has it."""

    policy: str | None = None
    matcher: str | None = None
    on_nonlinear: str | None = None
    max_rollback: int | None = None
    harness: str | None = None
    """A harness profile, or NO_HARNESS."""
    profile: str | None = None
    """A model profile, whose renderer counts the tokens."""


@dataclass(frozen=True, slots=True)
class Own:
    """The settings a session was served under."""

    policy: str
    matcher: str
    on_nonlinear: str
    max_rollback: int
    harness: str | None
    """Harness profile in force."""
    healing: bool = True


@dataclass(frozen=True, slots=True)
class Setup:
    """Everything that decides where a request attaches."""

    policy: str
    matcher: MessageMatcher
    on_nonlinear: str
    max_rollback: int
    same_renderer: bool
    """What the session's renderer refused to continue, it refuses here too."""
    append_roles: frozenset[str] | None = None
    """Roles that may follow a generated turn; None = not known, every role may."""


def setup_of(
    own: Own,
    changes: Changes,
    harnesses: Mapping[str, HarnessProfile],
    append_roles: frozenset[str] | None = None,
) -> Setup:
    """The session's settings with the changes. Raises ValueError for names that do not resolve."""
    policy = changes.policy or own.policy
    matcher: MessageMatcher = LINEAR_FORM
    if policy != "linear" and (changes.matcher or not uses_linear_form(policy, healing=own.healing)):
        matcher = resolve_matcher(changes.matcher or own.matcher)
    harness = changes.harness or own.harness or NO_HARNESS
    if harness != NO_HARNESS and (harness in harnesses or changes.harness):
        if harness not in harnesses:
            raise ValueError(
                f"unknown harness profile {harness!r}; use one of {', '.join(sorted(harnesses))}"
            )
        matcher = HarnessMatcher(matcher, harnesses[harness])
    return Setup(
        policy=policy,
        matcher=matcher,
        on_nonlinear=changes.on_nonlinear or own.on_nonlinear,
        max_rollback=own.max_rollback if changes.max_rollback is None else changes.max_rollback,
        same_renderer=changes.profile is None,
        append_roles=append_roles,
    )
