"""Turns of one path become one sample: completions trained, everything between them observed.

Each turn's prompt repeats all that came before it, so merging copies every delta once. The merge ends early
at a turn that did not complete (unless the next prompt closed it), and before a turn without the replay rows
that are held.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from sessions_app.errors import SamplesFailed
from sessions_app.packing import Ids, Logprobs
from trainer_export.samples.align import TurnSlice
from trainer_export.samples.sample import Mask, Stop
from trainer_export.samples.values import CutContinuation, Status


def mergeable(slices: Sequence[TurnSlice]) -> tuple[list[TurnSlice], Stop | None]:
    """The leading slices that make one sample, and, if there are more, why it ends where it does."""
    for position, (held, following) in enumerate(pairwise(slices), start=1):
        stop = _stop_between(held, following)
        if stop is not None:
            return list(slices[:position]), stop
    return list(slices), None


def _stop_between(held: TurnSlice, following: TurnSlice) -> Stop | None:
    if held.status is not Status.COMPLETED and not _goes_on(held, following):
        return Stop(held.turn.seq, held.status.value)
    if _lacks(held.routed_experts, following.routed_experts) or _lacks(
        held.indexer_topk, following.indexer_topk
    ):
        return Stop(following.turn.seq, "replay_missing")
    return None


def _goes_on(held: TurnSlice, following: TurnSlice) -> bool:
    closed = held.status is Status.TRUNCATED and following.turn.cut_continuation is CutContinuation.CLOSE
    return closed or following.turn.realigns


def _lacks(held: object, following: object) -> bool:
    return held is not None and following is None


def merged_tokens(slices: Sequence[TurnSlice]) -> Ids:
    """All tokens of the merged sample. Raises SamplesFailed where a prompt does not repeat what came before
    it."""
    buffer = np.empty(
        sum(part.turn.prompt_delta.size + part.turn.completion.size for part in slices), np.int32
    )
    held = 0
    for part in slices:
        shared = part.prompt_length - part.turn.prompt_delta.size
        if part is not slices[0]:
            _check_repeats(buffer[shared:held], part)
            _check_observes(part.prompt_length - held)
        buffer[shared : part.prompt_length] = part.turn.prompt_delta
        buffer[part.prompt_length : part.prompt_length + part.turn.completion.size] = part.turn.completion
        held = part.total
    tokens = buffer[:held]
    tokens.setflags(write=False)
    return tokens


def _check_repeats(beyond_shared: Ids, part: TurnSlice) -> None:
    """Held ids behind the trimmed border must stand in the new prompt all the same."""
    if not beyond_shared.size:
        return
    added = np.concatenate([part.turn.prompt_delta, part.turn.completion[: part.kept]])
    if not np.array_equal(added[: beyond_shared.size], beyond_shared):
        raise SamplesFailed("b.tokens must start with a.tokens")


def _check_observes(length: int) -> None:
    if length <= 0:
        raise SamplesFailed(f"obs_len must be > 0, got {length}")


def response_text(slices: Sequence[TurnSlice], tokens: Ids, decode: Callable[[Ids], str]) -> str:
    """Completions and the observations between them, each decoded by itself."""
    parts: list[str] = []
    held = slices[0].prompt_length
    for part in slices:
        for ids in (tokens[held : part.prompt_length], tokens[part.prompt_length : part.total]):
            if ids.size:
                parts.append(decode(ids))
        held = part.total
    return "".join(parts)


def loss_mask(slices: Sequence[TurnSlice]) -> Mask:
    """1 for each kept sampled id, from the first completion on."""
    start = slices[0].prompt_length
    mask = np.zeros(slices[-1].total - start, np.uint8)
    for part in slices:
        mask[part.prompt_length - start : part.total - start] = 1
    return mask


def logprobs(slices: Sequence[TurnSlice]) -> Logprobs:
    """The logprob of each kept sampled id, 0.0 for what was observed."""
    start = slices[0].prompt_length
    values = np.zeros(slices[-1].total - start, np.float64)
    for part in slices:
        values[part.prompt_length - start : part.total - start] = part.turn.logprobs[: part.kept]
    return values
