"""Calls that wait for a reward, in the order they were met; the newest one that has ended takes the next
reward.

A call has ended when its end is not after the reward's start. Each span id takes one reward. Asking and
adding cost O(log n). A call whose end is unknown raises TypeError when a search comes past it, as a plain
comparison would.
"""

import math
from collections.abc import Mapping
from typing import Any


class OpenCalls:
    """A tree over the calls' ends that finds the last one not above a bound."""

    def __init__(self, capacity: int, rewards: Mapping[str, Any]) -> None:
        """`rewards` is looked at as it grows: a span id in it takes no more."""
        self._rewards = rewards
        self._size = 1 << max(capacity - 1, 0).bit_length()
        self._earliest_end = [math.inf] * (2 * self._size)
        self._waiting = [False] * (2 * self._size)
        self._ids: list[str] = []
        self._ends: list[float | None] = []
        self._positions: dict[str, list[int]] = {}
        self._last_without_end = -1

    def add(self, span_id: str, end: float | None) -> None:
        """Append a call."""
        position = len(self._ids)
        self._ids.append(span_id)
        self._ends.append(end)
        self._positions.setdefault(span_id, []).append(position)
        if end is None:
            self._last_without_end = position
        elif span_id not in self._rewards:
            self._set(position, -math.inf if math.isnan(end) else end, True)

    def take(self, start: float | None) -> str | None:
        """The call that gets a reward starting at `start`; it waits no longer."""
        if not self._ids:
            return None
        if start is None:
            _compare(self._ends[-1], start)
        position = self._last_ended(math.inf if start is None or math.isnan(start) else start)
        if position < self._last_without_end:
            _compare(None, start)
        if position < 0:
            return None
        for same in self._positions[self._ids[position]]:
            self._set(same, math.inf, False)
        return self._ids[position]

    def _last_ended(self, bound: float) -> int:
        slot = 1
        if not self._ended(slot, bound):
            return -1
        while slot < self._size:
            slot = 2 * slot + 1 if self._ended(2 * slot + 1, bound) else 2 * slot
        return slot - self._size

    def _ended(self, slot: int, bound: float) -> bool:
        return self._waiting[slot] and self._earliest_end[slot] <= bound

    def _set(self, position: int, end: float, waiting: bool) -> None:
        slot = self._size + position
        self._earliest_end[slot], self._waiting[slot] = end, waiting
        while slot > 1:
            slot //= 2
            self._earliest_end[slot] = min(self._earliest_end[2 * slot], self._earliest_end[2 * slot + 1])
            self._waiting[slot] = self._waiting[2 * slot] or self._waiting[2 * slot + 1]


def _compare(end: float | None, start: float | None) -> None:
    """Raises TypeError by itself."""
    end > start  # type: ignore[operator]  # noqa: B015
