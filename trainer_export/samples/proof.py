"""Proof, token by token: sampled by the recorded call, in this very left context, with its own logprob, once.

What a row would train is compared with what the store says was fed and sampled, and the store with the
context digest that the commit wrote. Whatever fails is masked and counted by reason. Invariant: for every
row, and for the session, generated = trained + the sum over all reasons.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sessions_app.history.context import ROOT, context_digest
from trainer_export.samples.proof_row import CODE, TRAINED, Codes, RowView
from trainer_export.samples.reasons import Reason
from trainer_export.samples.sample import Mask, Sample
from trainer_export.samples.values import Turn

_REASONS = tuple(Reason)


@dataclass(frozen=True, slots=True)
class Count:
    """What became of generated tokens."""

    generated: int
    trained: int
    masked: dict[str, int]
    """By reason, zeros left out."""


@dataclass(frozen=True, slots=True)
class RowProof:
    """What is proven of one row."""

    loss_mask: Mask
    """The row's mask without everything that is not proven."""
    count: Count
    """Over all completions on the path of the row's leaf."""
    trained_by_turn: dict[int, int]
    unsampled: int
    """Positions that the row wanted to train though nothing was sampled there; masked."""


@dataclass(frozen=True, slots=True)
class SessionProof:
    """All rows of a session, and each generated token of the session once."""

    rows: tuple[RowProof, ...]
    """In the order of the samples."""
    count: Count


def prove(
    samples: Sequence[Sample], turns: Sequence[Turn], elsewhere: Mapping[int, Reason] | None = None
) -> SessionProof:
    """Proves the rows of one session against all of its nodes, as stored.

    `elsewhere`: why the nodes that stand in none of the rows do not; `not_picked` where it says nothing.
    """
    ledger = _Ledger(turns, elsewhere or {})
    rows = [_Row(sample) for sample in samples]
    for row in sorted(rows, key=lambda row: row.leaf_seq):
        row.enter(ledger)
    return SessionProof(tuple(row.proof(ledger) for row in rows), _count(ledger.fates.values()))


class _Ledger:
    """Each generated token of the session once, with the best that any row makes of it."""

    def __init__(self, turns: Sequence[Turn], elsewhere: Mapping[int, Reason]) -> None:
        self.stored = {turn.seq: turn for turn in turns}
        self.intact = _intact(turns)
        self.fates: dict[int, Codes] = {}
        for turn in turns:
            absent = CODE[elsewhere.get(turn.seq, Reason.NOT_PICKED)]
            self.fates[turn.seq] = np.full(turn.completion.size, absent, np.uint8)

    def settle(self, seq: int, codes: Codes) -> None:
        """Enters what one row makes of a completion; what an earlier row trains is not trained again."""
        fates = self.fates[seq]
        twice = (codes == TRAINED) & (fates == TRAINED)
        np.minimum(fates, codes, out=fates)
        codes[twice] = CODE[Reason.TRAINED_ELSEWHERE]


def _intact(turns: Sequence[Turn]) -> frozenset[int]:
    """Nodes whose stored deltas, and all above them, are those of which the commit took the digest."""
    digests: dict[int | None, bytes] = {None: ROOT}
    for turn in turns:
        digests[turn.seq] = context_digest(
            digests[turn.parent], turn.trim, turn.prompt_delta, turn.completion
        )
    return frozenset(turn.seq for turn in turns if digests[turn.seq] == turn.context_digest)


class _Row:
    """One row: entered into the ledger first, proven when all rows are in."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample
        self._view = RowView(sample)
        self._codes: dict[int, Codes] = {}

    @property
    def leaf_seq(self) -> int:
        return self._sample.leaf.last.seq

    def enter(self, ledger: _Ledger) -> None:
        agreed = 0
        for turn in self._sample.leaf.turns:
            agreed = self._view.agreed(agreed, ledger.stored[turn.seq])
            self._codes[turn.seq] = self._view.judge(turn, agreed, turn.seq in ledger.intact)
            ledger.settle(turn.seq, self._codes[turn.seq])

    def proof(self, ledger: _Ledger) -> RowProof:
        mask: Mask = np.zeros(self._view.wanted.size, np.uint8)
        for seq, codes in self._codes.items():
            owned = (codes == CODE[Reason.POSTPROCESSOR]) & (ledger.fates[seq] == TRAINED)
            codes[owned] = CODE[Reason.TRAINED_ELSEWHERE]
            mask[self._view.starts[seq] + np.flatnonzero(codes == TRAINED)] = 1
        return RowProof(
            loss_mask=mask[self._view.response],
            count=_count(self._codes.values()),
            trained_by_turn={seq: _trained(codes) for seq, codes in self._codes.items()},
            unsampled=int(np.count_nonzero(self._view.wanted & ~self._view.sampled())),
        )


def _trained(codes: Codes) -> int:
    return int(np.count_nonzero(codes == TRAINED))


def _count(all_codes: Iterable[Codes]) -> Count:
    counts = np.zeros(len(_REASONS) + 1, np.int64)
    for codes in all_codes:
        counts += np.bincount(codes, minlength=counts.size)
    masked = {str(reason): int(counts[CODE[reason]]) for reason in _REASONS if counts[CODE[reason]]}
    return Count(generated=int(counts.sum()), trained=int(counts[TRAINED]), masked=masked)
