"""Where the time of one turn went, for callers that ask for it with a header; nothing is measured otherwise.

Told as `Server-Timing`, in milliseconds. Stages follow one another, so their sum is the time from arrival to
reply.
"""

from time import perf_counter
from typing import Protocol

ASKED_BY = "x-tito-timing"
"""Request header, with any value."""


class Stopwatch(Protocol):
    """What a turn tells the time to."""

    def lap(self, stage: str) -> None:
        """Everything since the last lap belongs to this stage."""
        ...


class RunningStopwatch:
    """Adds up the laps of each stage."""

    def __init__(self, started: float) -> None:
        self._last = started
        self._seconds: dict[str, float] = {}

    def lap(self, stage: str) -> None:
        """See Stopwatch."""
        now = perf_counter()
        self._seconds[stage] = self._seconds.get(stage, 0.0) + now - self._last
        self._last = now

    def header(self, statements: int) -> str:
        """The value of Server-Timing. `statements`: SQL statements of this process so far."""
        laps = [f"{stage};dur={seconds * 1000:.3f}" for stage, seconds in self._seconds.items()]
        return ", ".join([*laps, f"sql;desc={statements}"])


class NoStopwatch:
    """Nobody asked."""

    def lap(self, stage: str) -> None:
        """See Stopwatch."""


NO_STOPWATCH = NoStopwatch()
