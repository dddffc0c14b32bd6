"""Chains that were not healed: what becomes of a turn whose prompt is no continuation of the ids before it.

`fork` (default): it starts a row of its own, with its whole prompt in front. `realign`
(`fork_threshold_tokens` above 0): if the two agree at least up to the last response, and the new
completion is shorter than the threshold, the row goes on: that response gives way to what the new prompt
says in its place and is no longer trained. Every id that stays trained keeps the very context it was
sampled in.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace

from trainer_export.samples.align import run_length
from trainer_export.samples.forest import path_ids, path_of
from trainer_export.samples.values import SessionForest, Turn

_log = logging.getLogger(__name__)


def reconcile(forest: SessionForest, fork_threshold_tokens: int | None) -> SessionForest:
    """The forest with the roots realigned that the threshold allows; None or 0 forks them all."""
    if not fork_threshold_tokens or fork_threshold_tokens < 0:
        return forest
    if forest.healed:
        _log.warning("fork_threshold_tokens has no effect on session %s: it is healed", forest.session_id)
        return forest
    by_seq = {turn.seq: turn for turn in forest.turns}
    return replace(
        forest, turns=tuple(_realigned(by_seq, turn, fork_threshold_tokens) for turn in forest.turns)
    )


def _realigned(by_seq: Mapping[int, Turn], turn: Turn, threshold: int) -> Turn:
    if turn.parent is not None or turn.continues is None or turn.completion.size >= threshold:
        return turn
    held = path_ids(path_of(by_seq, turn.continues))
    wiped = by_seq[turn.continues].completion.size
    response_start = held.size - wiped
    prompt = turn.prompt_delta
    if prompt.size <= response_start or run_length(held, prompt) < response_start:
        return turn
    return replace(
        turn, parent=turn.continues, trim=wiped, prompt_delta=prompt[response_start:], realigns=True
    )
