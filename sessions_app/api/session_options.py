"""The options of POST /sessions: what each may be, and what applies where it is not given."""

import math
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from sessions_app import errors
from sessions_app.history.matchers.registry import BUILT_IN_MATCHERS
from sessions_app.json_text import encodes
from sessions_app.store.values import NewSession, SessionSettings
from sessions_app.turns.profiles import DEFAULT_PROFILE
from tito_project import configuration as choices
from tito_project.configuration import Configuration

_MOST_TEXT = 500
_NO_SAMPLING = frozenset(
    {"messages", "tools", "chat_template_kwargs", "input_ids", "n", "stream", "stream_options"}
)


def read_options(
    options: Mapping[str, Any], configuration: Configuration, session_id: UUID, key_hash: bytes
) -> NewSession:
    """The session that a create request describes. Raises InvalidArgument naming the key."""
    read = _Reader(options)
    policy = read.choice("history_policy", choices.HISTORY_POLICIES, configuration.history_policy)
    settings = SessionSettings(
        id=session_id,
        profile=read.text("profile", DEFAULT_PROFILE) or DEFAULT_PROFILE,
        history_policy=policy,
        on_nonlinear=read.choice("on_nonlinear", choices.ON_NONLINEAR, configuration.on_nonlinear),
        on_truncated=read.choice("on_truncated", choices.ON_TRUNCATED, configuration.truncation_rule(policy)),
        retry_policy=read.choice("retry_policy", choices.RETRY_POLICIES, configuration.retry_policy),
        message_matcher=_matcher(read, configuration),
        healing=read.flag("healing", configuration.healing),
        harness=read.text("harness", configuration.harness),
        sampling=read.sampling("sampling"),
        max_context_tokens=read.integer("max_context_tokens", configuration.max_context_tokens),
        max_turns=read.integer("max_turns", configuration.max_turns),
        rollout_id=read.text("rollout_id", None),
        attempt_id=read.text("attempt_id", None),
        group_id=read.text("group_id", None),
    )
    return NewSession(
        settings=settings,
        group_size=read.integer("group_size", None),
        labels=read.labels("labels"),
        idle_timeout_s=read.seconds("idle_timeout_s", configuration.idle_timeout_s),
        key_hash=key_hash,
    )


def _matcher(read: "_Reader", configuration: Configuration) -> str:
    """Built-in names only: a request never names code."""
    return read.choice("message_matcher", tuple(BUILT_IN_MATCHERS), configuration.message_matcher)


class _Reader:
    """Reads options one by one; null is as good as absent."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options

    def choice(self, name: str, allowed: tuple[str, ...], default: str) -> str:
        value = self._options.get(name)
        if value is None:
            return default
        return self._checked(
            name, value, lambda v: isinstance(v, str) and v in allowed, f"one of {', '.join(allowed)}"
        )

    def text(self, name: str, default: str | None) -> str | None:
        value = self._options.get(name)
        if value is None:
            return default
        return self._checked(name, value, _is_text, f"a text of 1 to {_MOST_TEXT} characters without NUL")

    def flag(self, name: str, default: bool) -> bool:
        value = self._options.get(name)
        if value is None:
            return default
        return self._checked(name, value, lambda v: isinstance(v, bool), "true or false")

    def integer(self, name: str, default: int | None) -> int | None:
        value = self._options.get(name)
        if value is None:
            return default
        return self._checked(name, value, _is_count, "a whole number from 1 to 2147483647")

    def seconds(self, name: str, default: float | None) -> float | None:
        value = self._options.get(name)
        if value is None:
            return default
        return float(self._checked(name, value, _is_duration, "a positive number"))

    def mapping(self, name: str) -> Mapping[str, Any]:
        value = self._options.get(name)
        if value is None:
            return {}
        return self._checked(name, value, lambda v: isinstance(v, dict), "an object")

    def sampling(self, name: str) -> Mapping[str, Any]:
        """Forced values; what a request is made of cannot be forced."""
        values = self.mapping(name)
        if reserved := sorted(_NO_SAMPLING & values.keys()):
            raise errors.InvalidArgument(f"{name} must not hold {reserved[0]}")
        return values

    def labels(self, name: str) -> Mapping[str, str]:
        value = self._options.get(name)
        if value is None:
            return {}
        return self._checked(name, value, _are_labels, "an object of texts")

    @staticmethod
    def _checked(name: str, value: Any, holds: Callable[[Any], bool], expected: str) -> Any:
        if not holds(value):
            raise errors.InvalidArgument(f"{name} must be {expected}")
        return value


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _MOST_TEXT and "\x00" not in value and encodes(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 2**31


def _is_duration(value: Any) -> bool:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0
    )


def _are_labels(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_text(name) and _is_text(text) for name, text in value.items())
