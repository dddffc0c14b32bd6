"""Where the time of one turn went, for callers that ask for it with a header and for our own spans; nothing
is measured otherwise.

Told as `Server-Timing`, in milliseconds. Stages follow one another, so their sum is the time from arrival to
reply.
"""

from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

ASKED_BY = "x-tito-timing"
"""Request header, with any value."""


@dataclass(frozen=True, slots=True)
class Lap:
    """One stretch of a turn, in seconds of perf_counter."""

    stage: str
    start: float
    end: float


class Stopwatch(Protocol):
    """What a turn tells the time to."""

    @property
    def laps(self) -> list[Lap]:
        """What was measured."""
        ...

    def lap(self, stage: str) -> None:
        """Everything since the last lap belongs to this stage."""
        ...


class RunningStopwatch:
    """Keeps the laps."""

    def __init__(self, started: float) -> None:
        self._last = started
        self.laps: list[Lap] = []

    def lap(self, stage: str) -> None:
        """See Stopwatch."""
        now = perf_counter()
        self.laps.append(Lap(stage, self._last, now))
        self._last = now

    def header(self, statements: int) -> str:
        """The value of Server-Timing. `statements`: SQL statements of this process so far."""
        seconds: dict[str, float] = {}
        for lap in self.laps:
            seconds[lap.stage] = seconds.get(lap.stage, 0.0) + lap.end - lap.start
        stages = [f"{stage};dur={took * 1000:.3f}" for stage, took in seconds.items()]
        return ", ".join([*stages, f"sql;desc={statements}"])


class NoStopwatch:
    """Nobody asked."""

    @property
    def laps(self) -> list[Lap]:
        """See Stopwatch."""
        return []

    def lap(self, stage: str) -> None:
        """See Stopwatch."""


NO_STOPWATCH = NoStopwatch()
