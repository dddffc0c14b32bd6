"""A matcher that looks at messages through a harness profile, and what it tolerated.

Invariant: two messages match exactly when the session's matcher accepts their forms, so keys and walk agree
here as they do without a profile.
"""

from dataclasses import dataclass, replace

from sessions_app.history.differences import (
    FirstDifference,
    accepts,
    first_difference,
    message_difference,
)
from sessions_app.history.harness.profiles import HarnessProfile
from sessions_app.history.matchers.base import Message, MessageMatcher

_NO_PART = b""


class HarnessMatcher:
    """The session's matcher behind a profile."""

    def __init__(self, matcher: MessageMatcher, profile: HarnessProfile) -> None:
        self.name = matcher.name
        self.matcher = matcher
        self.profile = profile

    def matches(self, stored: Message, replayed: Message) -> bool:
        one, other = self.profile.passes(stored), self.profile.passes(replayed)
        if one or other:
            return one and other
        return self.matcher.matches(self.profile.form(stored), self.profile.form(replayed))

    def key(self, message: Message) -> bytes | None:
        return _NO_PART if self.profile.passes(message) else self.matcher.key(self.profile.form(message))


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A difference that a profile tolerated: the stored spelling is what stays and what is fed."""

    rules: tuple[str, ...]
    """`profile/tolerance` of every tolerance the pair needed, in order."""
    difference: FirstDifference
    """Where the matcher alone would have refused the pair."""


def tolerated(index: int, stored: Message, replayed: Message, matcher: HarnessMatcher) -> Rewrite | None:
    """What had to be tolerated in a matched pair; None if the matcher accepts it as it is."""
    if accepts(matcher.matcher, stored, replayed):
        return None
    difference = message_difference(index, stored, replayed, matcher.matcher)
    return Rewrite(tuple(_needed(stored, replayed, matcher)), difference)


def passed(index: int, stored: Message | None, replayed: Message | None, matcher: HarnessMatcher) -> Rewrite:
    """A message that only one side has, because it may come and go. `index`: its place in the request."""
    sides = [[] if message is None else [message] for message in (stored, replayed)]
    difference = first_difference(sides[0], sides[1], matcher.matcher)
    assert difference is not None  # one side has a message
    message = replayed if stored is None else stored
    assert message is not None
    return Rewrite(tuple(matcher.profile.passing_rules(message)), replace(difference, index=index))


def _needed(stored: Message, replayed: Message, matcher: HarnessMatcher) -> list[str]:
    """Tolerances without which the pair would not match; if each could be spared, all that changed it."""
    profile = matcher.profile
    needed = [
        profile.rule(tolerance)
        for tolerance in profile.tolerances
        if not accepts(HarnessMatcher(matcher.matcher, profile.without(tolerance)), stored, replayed)
    ]
    touched = [*profile.canonicalise(stored).rules, *profile.canonicalise(replayed).rules]
    return needed or list(dict.fromkeys(touched))
