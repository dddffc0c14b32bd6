"""Stretches of a path's ids for the token view, and the map of the whole path above them."""

from dataclasses import dataclass

from django.http import HttpRequest

from sessions_app.admin.readers import READERS, Reading
from sessions_app.insight.paths import TokenPath
from sessions_app.insight.tokens import Fates, TokenCell, cells, no_fates, versions_of
from sessions_app.models import ModelProfile

STRETCH = 512
"""Cells of one stretch: what a page holds at first, and what scrolling adds."""
SIGNALS = ("text", "mask", "logprob", "version", "owner")


@dataclass(frozen=True, slots=True)
class TurnMark:
    """Where a turn stands in the path: for the map, and for the heading inside a stretch."""

    node: int
    start: int
    spoken: int
    end: int
    finish_reason: str
    version: str | None
    logprob_mean: float | None

    @property
    def prompt(self) -> int:
        """Ids of its prompt delta."""
        return self.spoken - self.start

    @property
    def sampled(self) -> int:
        """Ids of its completion."""
        return self.end - self.spoken


@dataclass(frozen=True, slots=True)
class Stretch:
    """What a template shows of a path."""

    cells: list[TokenCell]
    turns: list[TurnMark]
    """Those with an id in the stretch."""
    first: int
    """First index of the whole view."""
    last: int
    """One behind the last index of the whole view."""
    start: int
    stop: int
    signal: str
    versions: list[str]
    """Weight versions on the path, in order of appearance."""
    unavailable: str | None
    """Why there is no text."""

    @property
    def before(self) -> int | None:
        """Start of the stretch before."""
        return max(self.first, self.start - STRETCH) if self.start > self.first else None

    @property
    def after(self) -> int | None:
        """Start of the stretch behind."""
        return self.stop if self.stop < self.last else None


def stretch_of(
    path: TokenPath,
    first: int,
    last: int,
    at: int,
    reading: Reading,
    signal: str,
    *,
    most: int = STRETCH,
    fates: Fates = no_fates,
) -> Stretch:
    """The stretch of a view from `first` to `last` that begins at `at`, of `most` ids at most."""
    start = min(max(at, first), max(last - 1, first))
    stop = min(start + most, last)
    marks = turn_marks(path)
    return Stretch(
        cells=cells(path, start, stop, reading.reader, fates),
        turns=[mark for mark in marks if mark.start < stop and mark.end > start],
        first=first,
        last=last,
        start=start,
        stop=stop,
        signal=signal,
        versions=versions_of(path),
        unavailable=reading.unavailable,
    )


def turn_marks(path: TokenPath) -> list[TurnMark]:
    """Every turn of the path."""
    return [
        TurnMark(
            node=span.turn.seq,
            start=span.start,
            spoken=span.spoken,
            end=span.end,
            finish_reason=span.turn.finish_reason,
            version=span.turn.version or span.turn.version_dispatch,
            logprob_mean=float(span.turn.logprobs.mean()) if len(span.turn.logprobs) else None,
        )
        for span in path.spans
    ]


def asked_signal(request: HttpRequest) -> str:
    """The signal of `?signal=`; `text` for anything unknown."""
    asked = request.GET.get("signal", "")
    return asked if asked in SIGNALS else SIGNALS[0]


def reading_of(profile: ModelProfile, path: TokenPath) -> Reading:
    """How to read the ids of a path."""
    return READERS.reading(profile, path.tokenizers)
