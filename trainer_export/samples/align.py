"""Each turn of a leaf against the ids that were accumulated: how many of its sampled ids survive at its
place.

Ids at the end of a completion that the next prompt replaced (an ambiguous boundary, at most
`max_trim_tokens`) are trimmed; a boundary id that the next prompt repeats stays and stays trained.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sessions_app.errors import SamplesFailed
from sessions_app.packing import Ids
from trainer_export.samples.replay_rows import checked_indexer, checked_routed
from trainer_export.samples.rules import AssemblyRules
from trainer_export.samples.values import Leaf, Payload, Status, Turn


@dataclass(frozen=True, slots=True)
class TurnSlice:
    """One turn as a sample of its own: its whole prompt and what is kept of its completion."""

    turn: Turn
    index: int
    """Position on the path, from 0."""
    prompt_length: int
    kept: int
    """Sampled ids kept."""
    status: Status
    routed_experts: Payload | None
    """Full replay rows, of the size that the uncut turn needs; None in additional mode."""
    indexer_topk: Payload | None

    @property
    def total(self) -> int:
        """Tokens of this turn's sample."""
        return self.prompt_length + self.kept

    @property
    def replay_rows(self) -> int:
        """Full replay rows of the uncut turn."""
        return self.prompt_length + self.turn.completion.size - 1

    def cut(self, kept: int) -> "TurnSlice":
        """The same with fewer sampled ids, hence truncated."""
        return replace(self, kept=kept, status=Status.TRUNCATED)


def run_length(left: Ids, right: Ids) -> int:
    """Leading ids that are equal."""
    shorter = min(left.size, right.size)
    differs = left[:shorter] != right[:shorter]
    return int(differs.argmax()) if differs.any() else shorter


def slices_of(leaf: Leaf, rules: AssemblyRules) -> list[TurnSlice]:
    """One slice per turn. Raises SamplesFailed where the accumulated ids contradict the turns."""
    slices = []
    lost = given_up(leaf)
    for index, (turn, prompt_length) in enumerate(prompt_lengths(leaf)):
        kept = 0 if turn.seq in lost else _kept(leaf, turn, prompt_length, rules.max_trim_tokens)
        slices.append(_slice(turn, index, prompt_length, kept, rules))
    if slices[-1].total != leaf.accumulated_ids.size:
        raise SamplesFailed(
            f"cursor {slices[-1].total} != len(accumulated_token_ids) {leaf.accumulated_ids.size} "
            f"after processing all {len(slices)} records"
        )
    return slices


def given_up(leaf: Leaf) -> frozenset[int]:
    """Turns whose whole completion a later, realigned prompt stands in place of."""
    return frozenset(turn.parent for turn in leaf.turns if turn.realigns and turn.parent is not None)


def prompt_lengths(leaf: Leaf) -> Iterator[tuple[Turn, int]]:
    """Each turn with the number of ids it was fed."""
    held = 0
    for turn in leaf.turns:
        prompt_length = held - turn.trim + turn.prompt_delta.size
        yield turn, prompt_length
        held = prompt_length + turn.completion.size


def _kept(leaf: Leaf, turn: Turn, cursor: int, max_trim_tokens: int) -> int:
    kept = run_length(turn.completion, leaf.accumulated_ids[cursor : cursor + turn.completion.size])
    trimmed = turn.completion.size - kept
    is_last = turn is leaf.last
    allowed = 0 if is_last else max_trim_tokens
    if trimmed > allowed:
        raise SamplesFailed(
            f"trim_count {trimmed} exceeds allowed={allowed} "
            f"(is_last={is_last}, max_trim_tokens={max_trim_tokens}); "
            f"output_ids[-3:]={turn.completion[-3:].tolist()}, "
            f"accumulated[cursor:cursor+3]={leaf.accumulated_ids[cursor : cursor + 3].tolist()}"
        )
    return kept


def _slice(turn: Turn, index: int, prompt_length: int, kept: int, rules: AssemblyRules) -> TurnSlice:
    if turn.logprobs.size != turn.completion.size:
        raise SamplesFailed(
            f"node {turn.seq} has {turn.logprobs.size} logprobs for {turn.completion.size} sampled ids"
        )
    rows = prompt_length + turn.completion.size - 1
    return TurnSlice(
        turn=turn,
        index=index,
        prompt_length=prompt_length,
        kept=kept,
        status=turn.status,
        routed_experts=None if rules.additional_r3 else checked_routed(turn, rows, rules.r3_layers),
        indexer_topk=checked_indexer(turn, rows),
    )
