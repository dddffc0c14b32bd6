"""Finding the attach point message by message, for matchers and messages that have no key.

Invariant: where every message has a key, the walk and the lookup by chained keys give the same node. Pure:
reads plain values, changes nothing, knows no storage. Paths of any length are walked without recursion.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sessions_app.history.matchers.base import Message, MessageMatcher
from sessions_app.history.passing import counted, steady

_NOWHERE = (0, -1)
"""Matched messages and seq before any node was found."""


@dataclass(frozen=True, slots=True)
class PathNode:
    """What the walk needs of a stored node."""

    seq: int
    """Commit order within the session."""
    parent: int | None
    """The parent's seq; None for a root."""
    delta: Sequence[Message]
    """The messages the node added to its parent's path, its reply last."""


@dataclass(frozen=True, slots=True)
class AttachPoint:
    """Where a request continues, and what it came closest to."""

    seq: int | None
    """The deepest node whose whole path the request repeats; None for a new root."""
    matched: int
    """Messages of the request that replay that path: the rest is new."""
    closest: int | None
    """The node whose path shares the most leading messages with the request; None in an empty forest."""
    shared: int
    """How many leading messages of the request those are; above `matched` if it leaves in the middle of a
    delta."""


def walk(nodes: Iterable[PathNode], replayed: Sequence[Message], matcher: MessageMatcher) -> AttachPoint:
    """The attach point of a request in a forest. Raises what the matcher raises.

    A node matches only with its whole delta; its children are then tried. Most matched messages win, then the
    highest seq. A delta longer than the request is still compared up to the request's end. Messages that may
    come and go are left out on both sides.
    """
    told = steady(replayed, matcher)
    replayed = counted(replayed, matcher)
    children: dict[int | None, list[PathNode]] = defaultdict(list)
    for node in nodes:
        children[node.parent].append(node)
    attach = closest = _NOWHERE
    pending = [(root, 0) for root in reversed(children[None])]
    while pending:
        node, offset = pending.pop()
        delta = counted(node.delta, matcher)
        end = offset + len(delta)
        shared = offset + match_length(delta, replayed[offset:end], matcher)
        closest = max(closest, (shared, node.seq))
        if shared == end:
            attach = max(attach, (shared, node.seq))
            pending.extend((child, end) for child in reversed(children[node.seq]))
    return AttachPoint(
        seq=_seq(attach),
        matched=behind(told, attach[0]),
        closest=_seq(closest),
        shared=behind(told, closest[0]),
    )


def behind(told: Sequence[int], count: int) -> int:
    """Where a request goes on behind the first `count` of its messages that count."""
    return told[count - 1] + 1 if count else 0


def match_length(stored: Sequence[Message], replayed: Sequence[Message], matcher: MessageMatcher) -> int:
    """How many leading messages are the same; stops at the first difference or at the shorter end."""
    length = 0
    for one, other in zip(stored, replayed, strict=False):
        if not matcher.matches(one, other):
            break
        length += 1
    return length


def _seq(found: tuple[int, int]) -> int | None:
    return None if found == _NOWHERE else found[1]
