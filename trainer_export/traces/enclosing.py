"""Which of many intervals encloses a given one most tightly? Answered in O(log n) for traces as they occur.

Identical intervals share one leaf. Leaves stand in order of their start; a tree over them keeps for each
stretch what a search needs to skip it: the latest end, the shortest duration, the first member. A search that
can skip little (many intervals of nearly the same slack) gives way to one pass over arrays. Slack is computed
with the very float expression of the reference, because its ties are decided by it.
"""

import math
from collections.abc import Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

Member = TypeVar("Member", bound=Hashable)

_ORDER_UNKNOWN = -1.0
_GRID = 2.0**22
_EXACT_BELOW = 2.0**31
_MOST_STEPS = 500
"""Of a search through the tree; a pass over arrays costs about as much."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Start and end in seconds; the end may lie before the start."""

    start: float
    end: float

    @property
    def duration(self) -> float:
        """Negative when it ends before it starts."""
        return self.end - self.start

    def slack_around(self, inner: "Interval") -> float:
        """How much longer this one is than `inner`, in the reference's order of operations."""
        return self.end - inner.end + inner.start - self.start


class IntervalIndex(Generic[Member]):
    """Members by interval, given in their order; they can leave, and their order can become unknown."""

    def __init__(self, members: Iterable[tuple[Interval, Member]]) -> None:
        self._members: dict[Interval, dict[Member, float]] = {}
        for order, (interval, member) in enumerate(members):
            self._members.setdefault(interval, {})[member] = order
        self._leaves = sorted(self._members, key=lambda interval: (interval.start, interval.end))
        self._position = {leaf: position for position, leaf in enumerate(self._leaves)}
        self._rounding = _rounding(self._leaves)
        self._starts = np.array([leaf.start for leaf in self._leaves])
        self._ends = np.array([leaf.end for leaf in self._leaves])
        self._build()

    def _build(self) -> None:
        self._size = 1 << max(len(self._leaves) - 1, 0).bit_length()
        self._latest_end = [-math.inf] * (2 * self._size)
        self._shortest = [math.inf] * (2 * self._size)
        self._first = [math.inf] * (2 * self._size)
        for slot, leaf in enumerate(self._leaves, self._size):
            self._latest_end[slot] = leaf.end
            self._shortest[slot] = leaf.duration
            self._first[slot] = min(self._members[leaf].values())
        for slot in range(self._size - 1, 0, -1):
            self._pull(slot)

    def _pull(self, slot: int) -> None:
        left, right = 2 * slot, 2 * slot + 1
        self._latest_end[slot] = max(self._latest_end[left], self._latest_end[right])
        self._shortest[slot] = min(self._shortest[left], self._shortest[right])
        self._first[slot] = min(self._first[left], self._first[right])

    def _pull_above(self, slot: int) -> None:
        while slot > 1:
            slot //= 2
            self._pull(slot)

    def remove(self, interval: Interval, member: Member) -> None:
        """Take one member out."""
        del self._members[interval][member]
        self._forget_first(interval)
        if not self._members[interval]:
            self._ends[self._position[interval]] = -math.inf
            slot = self._size + self._position[interval]
            self._latest_end[slot], self._shortest[slot], self._first[slot] = -math.inf, math.inf, math.inf
            self._pull_above(slot)

    def forget_order(self, interval: Interval, member: Member) -> None:
        """A member has moved: only the caller knows which one is the first now."""
        self._members[interval][member] = _ORDER_UNKNOWN
        self._forget_first(interval)

    def _forget_first(self, interval: Interval) -> None:
        slot = self._size + self._position[interval]
        if self._first[slot] != _ORDER_UNKNOWN:
            self._first[slot] = _ORDER_UNKNOWN
            self._pull_above(slot)

    def reorder(self, members: Iterable[tuple[Interval, Member]]) -> None:
        """All members in their order as it is now."""
        for order, (interval, member) in enumerate(members):
            self._members[interval][member] = order
        for slot, leaf in enumerate(self._leaves, self._size):
            self._first[slot] = min(self._members[leaf].values(), default=math.inf)
        for slot in range(self._size - 1, 0, -1):
            self._first[slot] = min(self._first[2 * slot], self._first[2 * slot + 1])

    def members(self, interval: Interval) -> Collection[Member]:
        """Those that have exactly this interval."""
        return self._members[interval].keys()

    def foremost(self, interval: Interval) -> list[Member]:
        """Of those that have exactly this interval the first in order, and all whose order is unknown."""
        orders = self._members[interval]
        unknown = [member for member, order in orders.items() if order == _ORDER_UNKNOWN]
        known = orders if not unknown else [member for member in orders if orders[member] != _ORDER_UNKNOWN]
        return [min(known, key=orders.__getitem__), *unknown] if known else unknown

    def tightest_around(self, inner: Interval) -> list[Interval]:
        """The enclosing intervals of least positive slack; on a tie those that can hold the first member."""
        least = self._least_slack(inner)
        if least == math.inf:
            return []
        found = None if least is None else self._first_with(inner, least)
        return self._scanned(inner) if found is None else found

    def around(self, inner: Interval, limit: int) -> list[Member]:
        """Members whose interval encloses `inner` or equals it; the search ends when there are `limit` of
        them.
        """
        found: list[Member] = []
        for leaf in self._enclosing(inner):
            found.extend(self._members[leaf])
            if len(found) >= limit:
                break
        return found

    def _enclosing(self, inner: Interval) -> Iterator[Interval]:
        stack = [(1, 0, self._size)]
        while stack:
            slot, low, high = stack.pop()
            if not self._may_enclose(slot, low, inner):
                continue
            if high - low == 1:
                yield self._leaves[low]
            else:
                middle = (low + high) // 2
                stack += ((2 * slot, low, middle), (2 * slot + 1, middle, high))

    def _may_enclose(self, slot: int, low: int, inner: Interval) -> bool:
        """False when every leaf below starts too late or ends too early."""
        return (
            low < len(self._leaves)
            and self._leaves[low].start <= inner.start
            and self._latest_end[slot] >= inner.end
        )

    def _scanned(self, inner: Interval) -> list[Interval]:
        """The same without the tree: every leaf is looked at."""
        count = int(np.searchsorted(self._starts, inner.start, side="right"))
        ends = self._ends[:count]
        with np.errstate(invalid="ignore"):
            slack = ends - inner.end + inner.start - self._starts[:count]
        slack[(ends < inner.end) | ~(slack > 0)] = math.inf
        least = slack.min(initial=math.inf)
        tied = np.flatnonzero(slack == least).tolist() if least < math.inf else []
        orders = {position: self._first[self._size + position] for position in tied}
        unknown = [position for position, order in orders.items() if order == _ORDER_UNKNOWN]
        known = [position for position, order in orders.items() if order != _ORDER_UNKNOWN]
        first = [min(known, key=orders.__getitem__)] if known else []
        return [self._leaves[position] for position in (*first, *unknown)]

    def _least_slack(self, inner: Interval) -> float | None:
        """Later starts are tried first, being the tighter ones as a rule. None where that takes too long."""
        least, steps = math.inf, 0
        stack = [(1, 0, self._size)]
        while stack:
            steps += 1
            if steps > _MOST_STEPS:
                return None
            slot, low, high = stack.pop()
            if self._shortest[slot] - inner.duration - self._rounding >= least:
                continue
            if not self._may_enclose(slot, low, inner):
                continue
            if high - low == 1:
                slack = self._leaves[low].slack_around(inner)
                least = slack if 0 < slack < least else least
            else:
                middle = (low + high) // 2
                stack += ((2 * slot, low, middle), (2 * slot + 1, middle, high))
        return least

    def _first_with(self, inner: Interval, slack: float) -> list[Interval] | None:
        """Of the leaves with this slack the first in order, and all whose order is unknown. None where that
        takes too long.
        """
        first, best, unknown, steps = math.inf, list[Interval](), list[Interval](), 0
        stack = [(1, 0, self._size)]
        while stack:
            steps += 1
            if steps > _MOST_STEPS:
                return None
            slot, low, high = stack.pop()
            if self._first[slot] >= first or self._shortest[slot] - inner.duration - self._rounding > slack:
                continue
            if not self._may_enclose(slot, low, inner):
                continue
            if high - low > 1:
                middle = (low + high) // 2
                halves = [(2 * slot, low, middle), (2 * slot + 1, middle, high)]
                stack += sorted(halves, key=lambda half: self._first[half[0]], reverse=True)
            elif self._leaves[low].slack_around(inner) == slack:
                if self._first[slot] == _ORDER_UNKNOWN:
                    unknown.append(self._leaves[low])
                else:
                    first, best = self._first[slot], [self._leaves[low]]
        return best + unknown


def _rounding(intervals: Iterable[Interval]) -> float:
    """How far two ways of computing a slack can differ: not at all for times on a fine grid, as clocks give
    them.
    """
    times = [time for interval in intervals for time in (interval.start, interval.end)]
    largest = max(map(abs, times), default=0.0)
    apart = max(times, default=0.0) - min(times, default=0.0)
    if apart + largest < _EXACT_BELOW and all((time * _GRID).is_integer() for time in times):
        return 0.0
    return 16 * 2.0**-52 * largest
