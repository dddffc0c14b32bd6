"""One row held against the store: which of the ids it would train are what they claim to be.

Positions are those of the row's tokens. A sampled id at position p is right if the row's tokens up to and
including p are exactly what the engine was fed and sampled, and the row's logprob at p is the one that was
reported for it.
"""

import numpy as np
import numpy.typing as npt

from sessions_app.packing import Ids
from trainer_export.samples.align import given_up, prompt_lengths, run_length
from trainer_export.samples.reasons import Reason, after_stop
from trainer_export.samples.sample import Sample, Span
from trainer_export.samples.values import Turn

Flags = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.uint8]
"""Per generated id of one turn: 0 = trained, else the code of its reason."""

TRAINED = 0
CODE = {reason: code for code, reason in enumerate(Reason, start=1)}


def kept_of(sample: Sample) -> dict[int, int]:
    """Sampled ids of each merged completion that are in the response still: a hook may have cut it short."""
    return {span.seq: _left_of(span, sample) for span in sample.spans}


def _left_of(span: Span, sample: Sample) -> int:
    if span.start < sample.response_start:
        return 0
    return max(0, min(span.length, len(sample.tokens) - span.start))


class RowView:
    """The per-token fields of a row, laid out over the whole path of its leaf."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample
        self.starts = {turn.seq: start for turn, start in prompt_lengths(sample.leaf)}
        self._given_up = given_up(sample.leaf)
        self.kept = kept_of(sample)
        self._merged = {span.seq: span.length for span in sample.spans}
        self.tokens: Ids = np.asarray(sample.tokens)
        size = max(len(self.tokens), sample.leaf.accumulated_ids.size)
        self.wanted: Flags = np.zeros(size, np.bool_)
        self.wanted[self.response] = np.asarray(sample.loss_mask) != 0
        self.logprobs = np.full(size, np.nan)
        self.logprobs[self.response] = sample.rollout_log_probs

    @property
    def response(self) -> slice:
        """Where the fields counted per response token stand."""
        return slice(self._sample.response_start, len(self.tokens))

    def sampled(self) -> Flags:
        """Positions of merged completions."""
        places: Flags = np.zeros(self.wanted.size, np.bool_)
        for seq, kept in self.kept.items():
            places[self.starts[seq] : self.starts[seq] + kept] = True
        return places

    def judge(self, turn: Turn, agreed: int, intact: bool) -> Codes:
        """What becomes of each id the turn sampled; `agreed`: leading ids of the row that are what was
        fed."""
        codes: Codes = np.full(turn.completion.size, CODE[self._beyond(turn)], np.uint8)
        kept = self.kept.get(turn.seq, 0)
        codes[kept : self._merged.get(turn.seq, 0)] = CODE[Reason.POSTPROCESSOR]
        start = self.starts[turn.seq]
        place = slice(start, start + kept)
        codes[:kept] = TRAINED
        values = self.logprobs[place]
        codes[:kept][~np.isfinite(values) | (values != turn.logprobs[:kept])] = CODE[Reason.LOGPROB]
        codes[max(agreed - start, 0) if intact else 0 : kept] = CODE[Reason.CONTEXT]
        codes[:kept][~self.wanted[place]] = CODE[Reason.POSTPROCESSOR]
        return codes

    def _beyond(self, turn: Turn) -> Reason:
        """Why sampled ids behind what was kept of a turn are not in the row."""
        stop = self._sample.stop
        if turn.seq not in self.kept:
            return after_stop(stop.reason) if stop else Reason.POSTPROCESSOR
        if turn.seq in self._given_up:
            return Reason.REALIGNED
        cut = stop is not None and stop.reason == "max_seq_len" and stop.seq == turn.seq
        return Reason.MAX_SEQ_LEN if cut else Reason.BOUNDARY_TRIM

    def agreed(self, before: int, stored: Turn) -> int:
        """Leading ids of the row that are what this turn was fed and sampled, given those of the turn
        before."""
        added = np.concatenate([stored.prompt_delta, stored.completion])
        shared = self.starts[stored.seq] - stored.prompt_delta.size
        if before < shared:
            return before
        return shared + run_length(added, self.tokens[shared : shared + added.size])
