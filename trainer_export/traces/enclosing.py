"""Which of many intervals encloses a given one most tightly? Answered in O(log n) for traces as they occur.

Identical intervals share one leaf. Leaves stand in order of their start; a tree over them keeps the latest
end and the shortest duration of each stretch, so that a search skips what ends too early or is longer than
the best so far. Slack is computed with the very float expression of the reference, because its ties are
decided by it.
"""

import math
from bisect import bisect_right
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

Member = TypeVar("Member", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Interval:
    """Start and end in seconds; the end may lie before the start."""

    start: float
    end: float

    def slack_around(self, inner: "Interval") -> float:
        """How much longer this one is than `inner`, in the reference's order of operations."""
        return self.end - inner.end + inner.start - self.start

    @property
    def sort_key(self) -> tuple[float, float]:
        """By start, then end."""
        return (self.start, self.end)


class IntervalIndex(Generic[Member]):
    """Members by interval; members can be removed, not added."""

    def __init__(self, members: Iterable[tuple[Interval, Member]]) -> None:
        self._members: dict[Interval, set[Member]] = {}
        for interval, member in members:
            self._members.setdefault(interval, set()).add(member)
        self._leaves = sorted(self._members, key=lambda interval: interval.sort_key)
        self._starts = [leaf.start for leaf in self._leaves]
        self._position = {leaf: position for position, leaf in enumerate(self._leaves)}
        self._tolerance = _rounding_error(self._leaves)
        self._build()

    def _build(self) -> None:
        self._size = 1 << max(len(self._leaves) - 1, 0).bit_length()
        self._latest_end = [-math.inf] * (2 * self._size)
        self._shortest = [math.inf] * (2 * self._size)
        for position, leaf in enumerate(self._leaves):
            self._latest_end[self._size + position] = leaf.end
            self._shortest[self._size + position] = leaf.end - leaf.start
        for slot in range(self._size - 1, 0, -1):
            self._pull(slot)

    def _pull(self, slot: int) -> None:
        left, right = 2 * slot, 2 * slot + 1
        self._latest_end[slot] = max(self._latest_end[left], self._latest_end[right])
        self._shortest[slot] = min(self._shortest[left], self._shortest[right])

    def remove(self, interval: Interval, member: Member) -> None:
        """Take one member out."""
        remaining = self._members[interval]
        remaining.discard(member)
        if remaining:
            return
        slot = self._size + self._position[interval]
        self._latest_end[slot], self._shortest[slot] = -math.inf, math.inf
        while slot > 1:
            slot //= 2
            self._pull(slot)

    def members(self, interval: Interval) -> set[Member]:
        """Those that have exactly this interval."""
        return self._members[interval]

    def tightest_around(self, inner: Interval) -> list[Interval]:
        """The enclosing intervals of least positive slack; more than one only on a tie."""
        reach = bisect_right(self._starts, inner.start)
        inner_duration = inner.end - inner.start
        least, found = math.inf, list[Interval]()
        stack = [(1, 0, self._size)]
        while stack:
            slot, low, high = stack.pop()
            if low >= reach or self._latest_end[slot] < inner.end:
                continue
            if self._shortest[slot] - inner_duration > least + self._tolerance:
                continue
            if high - low > 1:
                middle = (low + high) // 2
                stack.append((2 * slot, low, middle))
                stack.append((2 * slot + 1, middle, high))
                continue
            slack = self._leaves[low].slack_around(inner)
            if 0 < slack < least:
                least, found = slack, [self._leaves[low]]
            elif slack == least:
                found.append(self._leaves[low])
        return found

    def around(self, inner: Interval, limit: int) -> list[Member]:
        """Members whose interval encloses `inner` or equals it; the search ends when there are `limit` of
        them.
        """
        reach = bisect_right(self._starts, inner.start)
        found: list[Member] = []
        stack = [(1, 0, self._size)]
        while stack and len(found) < limit:
            slot, low, high = stack.pop()
            if low >= reach or self._latest_end[slot] < inner.end:
                continue
            if high - low > 1:
                middle = (low + high) // 2
                stack.append((2 * slot, low, middle))
                stack.append((2 * slot + 1, middle, high))
            else:
                found.extend(self._members[self._leaves[low]])
        return found


def _rounding_error(intervals: list[Interval]) -> float:
    """A bound on how far two ways of computing a slack can differ."""
    return 8 * 2.0**-52 * max((max(abs(leaf.start), abs(leaf.end)) for leaf in intervals), default=0.0)
