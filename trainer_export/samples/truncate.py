"""The token budget, spent at turn boundaries before anything is merged.

Turns are kept whole while they fit; the first that does not is cut if at least one sampled id fits, and
everything behind it is dropped.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from trainer_export.samples.align import TurnSlice
from trainer_export.samples.sample import Stop


@dataclass(frozen=True, slots=True)
class Budgeted:
    """What fits."""

    slices: list[TurnSlice]
    stop: Stop | None
    """The turn that was cut or dropped; None if all fits."""


def within(slices: Sequence[TurnSlice], max_seq_len: int | None) -> Budgeted:
    """The leading slices that fit into `max_seq_len` tokens (None = all)."""
    if max_seq_len is None:
        return Budgeted(list(slices), None)
    for position, turn_slice in enumerate(slices):
        overshoot = turn_slice.total - max_seq_len
        if overshoot > 0:
            kept = list(slices[:position])
            if turn_slice.kept > overshoot:
                kept.append(turn_slice.cut(turn_slice.kept - overshoot))
            return Budgeted(kept, Stop(turn_slice.turn.seq, "max_seq_len"))
    return Budgeted(list(slices), None)
