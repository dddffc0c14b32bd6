"""From a leaf to its raw sample: align, spend the token budget, merge, attach what rides along.

Pure and repeatable: the same leaf under the same rules gives the same sample. Linear in the ids of the path;
of replay payloads only those are touched that the sample hands out (`payloads_needed`).
"""

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any

from sessions_app.json_text import loads
from trainer_export.samples.align import TurnSlice, slices_of
from trainer_export.samples.merge import logprobs, loss_mask, mergeable, merged_tokens, response_text
from trainer_export.samples.replay_rows import additional_rows, configured, full_rows
from trainer_export.samples.rules import AssemblyRules
from trainer_export.samples.sample import PrefixCacheInfo, Rows, Sample, Span, Stop
from trainer_export.samples.truncate import within
from trainer_export.samples.values import JsonObject, Leaf, Speculative, Turn


def assemble(leaf: Leaf, rules: AssemblyRules) -> Sample | None:
    """The raw sample of a leaf; None where the budget leaves nothing. Raises SamplesFailed."""
    slices, stop = _merged(leaf, rules)
    return _sample(leaf, slices, stop, rules) if slices else None


def _merged(leaf: Leaf, rules: AssemblyRules) -> tuple[list[TurnSlice], Stop | None]:
    budgeted = within(slices_of(leaf, rules), rules.max_seq_len)
    if not budgeted.slices:
        return [], budgeted.stop
    slices, stop = mergeable(budgeted.slices)
    return slices, stop or budgeted.stop


def payloads_needed(leaf: Leaf, rules: AssemblyRules) -> set[tuple[int, str]]:
    """Seq and field of each replay payload that the leaf's sample hands out rows of. Raises SamplesFailed."""
    slices, _ = _merged(leaf, rules)
    if not slices:
        return set()
    last = slices[-1].turn
    routing = leaf.turns if rules.additional_r3 else (last,)
    found = {(turn.seq, "routed_experts") for turn in routing if turn.routed_experts is not None}
    return found | ({(last.seq, "indexer_topk")} if last.indexer_topk is not None else set())


def _sample(leaf: Leaf, slices: list[TurnSlice], stop: Stop | None, rules: AssemblyRules) -> Sample:
    tokens = merged_tokens(slices)
    turns = [part.turn for part in slices]
    last = slices[-1]
    return Sample(
        tokens=tokens,
        response=response_text(slices, tokens, rules.decode),
        response_length=tokens.size - slices[0].prompt_length,
        loss_mask=loss_mask(slices),
        rollout_log_probs=logprobs(slices),
        status=last.status,
        weight_versions=[turn.weight_version for turn in turns if turn.weight_version is not None],
        prefix_cache_info=_prefix_cache(turns),
        metadata=_metadata(leaf, slices, rules),
        leaf=leaf,
        spans=tuple(Span(part.turn.seq, part.prompt_length, part.kept) for part in slices),
        rollout_routed_experts=_routed_experts(leaf, last, tokens.size - 1, rules),
        rollout_indexer_topk=_indexer_topk(last, tokens.size - 1, rules),
        spec_info=_speculative(turns),
        stop=stop,
    )


def _prefix_cache(turns: Sequence[Turn]) -> PrefixCacheInfo:
    return PrefixCacheInfo(
        cached_tokens=sum(turn.cached_tokens for turn in turns),
        total_prompt_tokens=sum(turn.prompt_tokens for turn in turns),
    )


def _speculative(turns: Sequence[Turn]) -> Speculative | None:
    reported = [turn.speculative for turn in turns if turn.speculative is not None]
    return reduce(add, reported) if reported else None


def _routed_experts(leaf: Leaf, last: TurnSlice, rows: int, rules: AssemblyRules) -> Rows | None:
    if not rules.replay:
        return None
    if rules.additional_r3:
        return additional_rows(leaf.turns, rows, rules.r3_layers)
    if last.routed_experts is None:
        return None
    return full_rows(last.routed_experts, last.replay_rows, configured(rules.r3_layers))[:rows]


def _indexer_topk(last: TurnSlice, rows: int, rules: AssemblyRules) -> Rows | None:
    if not rules.replay or last.indexer_topk is None:
        return None
    return full_rows(last.indexer_topk, last.replay_rows, last.turn.indexer_layers or 0)[:rows]


def _metadata(leaf: Leaf, slices: Sequence[TurnSlice], rules: AssemblyRules) -> JsonObject:
    before = [None, *(turn for turn, _ in pairwise(leaf.turns))]
    lifecycle = [_lifecycle(part.turn, before[part.index], part.index + 1) for part in slices]
    metadata: JsonObject = {"lifecycle": lifecycle[0] if len(lifecycle) == 1 else lifecycle}
    last = slices[-1].turn
    if rules.debug_messages and last is leaf.last and last.messages_json is not None:
        metadata["messages"] = loads(last.messages_json.encode("utf-8", "surrogatepass"))
    return metadata


def _lifecycle(turn: Turn, previous: Turn | None, number: int) -> JsonObject:
    started = None if turn.engine_seconds is None else turn.committed_at - turn.engine_seconds
    entry: dict[str, Any] = {"t0": started, "t1": turn.committed_at, "turn": number}
    if turn.requested_at is not None:
        entry["req_ts"] = turn.requested_at
    if previous is not None:
        entry["prev_t1"] = previous.committed_at
    return entry
