"""A window of a path as cells: id, text, role in training, logprob, weight version, owner. Pure."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from sessions_app.insight.paths import TokenPath, TurnSpan, spans_within
from sessions_app.insight.spelling import Decode, Spelling, spell

_LEFT_CONTEXT = 8
"""Ids left of a window that are read too, so that a character cut by its edge is still whole."""
LOGPROB_STEPS = (-0.01, -0.1, -0.5, -1.0, -2.0, -4.0, -8.0)
"""Edges of the common logprob scale: step 0 is as good as certain, step 7 is below -8."""


@dataclass(frozen=True, slots=True)
class TokenCell:
    """One id where it stands."""

    index: int
    """Position in the path."""
    id: int
    text: str | None
    """None where no tokenizer is at hand."""
    continues: bool
    """It spells the rest of a character shown with an earlier id."""
    special: bool
    kind: str
    """`prompt` (new messages), `glue` (the template's close of the turn before) or `completion`."""
    node: int
    """Seq of the node that added it."""
    turn: int
    """Which turn of the path that is, from 0."""
    opens: bool
    """The first id of its turn."""
    logprob: float | None
    """Of sampled ids only."""
    version: str | None
    """Weights that sampled it, as reported by the engine, else as dispatched."""
    fate: str | None
    """Of sampled ids, where it is known: `trained`, or why it is not."""
    owner: int | None
    """Leaf whose row trains it."""
    era: int | None
    """Which of the path's weight versions that is, from 0 in order of appearance."""

    @property
    def breaks(self) -> bool:
        """Whether its text ends a line."""
        return self.text is not None and self.text.endswith("\n")

    @property
    def tint(self) -> str:
        """Alternating classes of owner and weight version, so that neighbours are told apart."""
        era = "" if self.era is None else f" v{self.era % 2}"
        return f"o{self.turn % 2}{era}"

    @property
    def step(self) -> int | None:
        """Where the logprob falls on the common scale."""
        if self.logprob is None or math.isnan(self.logprob):
            return None
        return sum(self.logprob < edge for edge in LOGPROB_STEPS)


@dataclass(frozen=True, slots=True)
class Reader:
    """How ids become text."""

    decode: Decode
    special_ids: frozenset[int]


Fates = Callable[[int, int], tuple[str, int | None] | None]
"""What becomes of a sampled id, by node and place in its completion, and the leaf that trains it; None =
unknown."""


def no_fates(_node: int, _place: int) -> tuple[str, int | None] | None:
    """Nothing is known."""
    return None


def cells(
    path: TokenPath, start: int, stop: int, reader: Reader | None, fates: Fates = no_fates
) -> list[TokenCell]:
    """The cells from `start` up to, not including, `stop`. `reader`: None = ids only."""
    start, stop = max(0, start), min(stop, len(path.ids))
    spellings = _spellings(path, start, stop, reader)
    special = reader.special_ids if reader else frozenset()
    turns = {span.turn.seq: at for at, span in enumerate(path.spans)}
    eras = {version: at for at, version in enumerate(versions_of(path))}
    return [
        _cell(
            span,
            at,
            number=int(path.ids[at]),
            turn=turns[span.turn.seq],
            era=eras.get(_version(span) or ""),
            spelling=spellings[at - start] if spellings else None,
            special=special,
            fate=fates(span.turn.seq, at - span.spoken) if at >= span.spoken else None,
        )
        for span in spans_within(path, start, stop)
        for at in range(max(start, span.start), min(stop, span.end))
    ]


def versions_of(path: TokenPath) -> list[str]:
    """Weight versions on the path in order of appearance."""
    named = (_version(span) for span in path.spans)
    return list(dict.fromkeys(version for version in named if version is not None))


def _version(span: TurnSpan) -> str | None:
    return span.turn.version or span.turn.version_dispatch


def _spellings(path: TokenPath, start: int, stop: int, reader: Reader | None) -> list[Spelling]:
    if reader is None:
        return []
    left = max(0, start - _LEFT_CONTEXT)
    return spell(path.ids[left:stop].tolist(), reader.decode)[start - left :]


def _cell(
    span: TurnSpan,
    at: int,
    *,
    number: int,
    turn: int,
    era: int | None,
    spelling: Spelling | None,
    special: frozenset[int],
    fate: tuple[str, int | None] | None,
) -> TokenCell:
    sampled = at >= span.spoken
    return TokenCell(
        index=at,
        id=number,
        text=spelling.text if spelling else None,
        continues=spelling.continues if spelling else False,
        special=number in special,
        kind=_kind(span, at),
        node=span.turn.seq,
        turn=turn,
        opens=at == span.start,
        logprob=_logprob(span, at) if sampled else None,
        version=_version(span) if sampled else None,
        fate=fate[0] if fate else None,
        owner=fate[1] if fate else None,
        era=era if sampled else None,
    )


def _kind(span: TurnSpan, at: int) -> str:
    if at >= span.spoken:
        return "completion"
    return "glue" if at < span.start + span.turn.glue else "prompt"


def _logprob(span: TurnSpan, at: int) -> float | None:
    place = at - span.spoken
    return float(span.turn.logprobs[place]) if place < len(span.turn.logprobs) else None
