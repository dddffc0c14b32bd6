"""Messages that may come and go: a harness injects them into its history and drops them again.

Only a harness profile knows such messages; no other matcher lets one pass. Invariant: what passes takes no
part in matching, neither by keys nor in the walk. Where it was stored it stays stored, and what is fed stays
the stored ids; what is new in a request is fed, whatever it is.
"""

from collections.abc import Callable, Sequence
from itertools import zip_longest

from sessions_app.history.harness.matcher import HarnessMatcher
from sessions_app.history.matchers.base import Message, MessageMatcher

Pair = tuple[int | None, int | None]
"""Positions of one message in a stored path and in a request; None on the side that has it not."""


def passing(matcher: MessageMatcher) -> Callable[[Message], bool] | None:
    """Which messages pass; None where none ever does."""
    if isinstance(matcher, HarnessMatcher) and matcher.profile.lets_pass:
        return matcher.profile.passes
    return None


def steady(messages: Sequence[Message], matcher: MessageMatcher) -> Sequence[int]:
    """Positions of the messages that count."""
    passes = passing(matcher)
    if passes is None:
        return range(len(messages))
    return [index for index, message in enumerate(messages) if not passes(message)]


def counted(messages: Sequence[Message], matcher: MessageMatcher) -> Sequence[Message]:
    """The messages that count."""
    if passing(matcher) is None:
        return messages
    return [messages[index] for index in steady(messages, matcher)]


def aligned(stored: Sequence[Message], replayed: Sequence[Message], matcher: MessageMatcher) -> list[Pair]:
    """The messages of a path beside those that replay it, in order. Both end with the same reply."""
    pairs: list[Pair] = []
    left = right = 0
    for ours, theirs in zip(steady(stored, matcher), steady(replayed, matcher), strict=False):
        pairs += zip_longest(range(left, ours), range(right, theirs))
        pairs.append((ours, theirs))
        left, right = ours + 1, theirs + 1
    return pairs
