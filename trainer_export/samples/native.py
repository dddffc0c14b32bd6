"""From a session to its proven native rows, and a report that accounts for every leaf and every generated
token."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from trainer_export.samples.align import prompt_lengths
from trainer_export.samples.arguments import SamplesArguments
from trainer_export.samples.cache import SampleCache
from trainer_export.samples.hooks import Hooks
from trainer_export.samples.identity import sample_ids
from trainer_export.samples.payload import Gathered, gather
from trainer_export.samples.proof import Count, RowProof, SessionProof, prove
from trainer_export.samples.proof_row import kept_of
from trainer_export.samples.reasons import Reason, nearest
from trainer_export.samples.reconcile import reconcile
from trainer_export.samples.rows import RowTurn, SampleRow
from trainer_export.samples.rules import AssemblyRules
from trainer_export.samples.sample import Sample
from trainer_export.samples.settled import settle
from trainer_export.samples.superseded import superseded_by
from trainer_export.samples.values import JsonObject, Leaf, SessionForest, history_metadata

_COLUMNS = frozenset({"accumulated_token_ids", "leaf"})
"""Metadata of the wire form that native rows have columns for."""


@dataclass(frozen=True, slots=True)
class DroppedLeaf:
    """A leaf without a row."""

    leaf: int
    reason: Reason
    superseded_by: int | None


@dataclass(frozen=True, slots=True)
class SessionReport:
    """What became of a session."""

    session_id: str
    nodes: int
    leaves: int
    rows: int
    dropped: tuple[DroppedLeaf, ...]
    count: Count
    """Every generated token of the session once."""
    empty_reason: str | None


@dataclass(frozen=True, slots=True)
class SessionRows:
    """The rows of one session (weights still those of a rollout with one row: see `weights`) and their
    report."""

    rows: list[SampleRow]
    samples: list[Sample]
    """The samples behind the rows, with proven masks: what the wire codec writes."""
    report: SessionReport


def session_rows(
    forest: SessionForest,
    hooks: Hooks,
    rules: AssemblyRules,
    arguments: SamplesArguments | None = None,
    *,
    fork_threshold_tokens: int | None = None,
    cache: SampleCache | None = None,
) -> SessionRows:
    """The proven rows of a session. Raises SamplesFailed where assembly or a hook refuses."""
    reconciled = reconcile(forest, fork_threshold_tokens)
    usable = cache if reconciled is forest else None
    gathered = gather(reconciled, arguments or SamplesArguments(), hooks, rules, usable)
    for sample in gathered.rows:
        settle(sample)
    dropped = _dropped(gathered)
    proof = prove(gathered.rows, forest.turns, _elsewhere(forest, gathered, dropped))
    return SessionRows(
        rows=_rows(forest, gathered.rows, proof),
        samples=gathered.rows,
        report=_report(forest, gathered, dropped, proof.count),
    )


def _rows(forest: SessionForest, samples: list[Sample], proof: SessionProof) -> list[SampleRow]:
    rows = []
    ids = sample_ids(forest.session_id, samples)
    for sample, row_proof, sample_id in zip(samples, proof.rows, ids, strict=True):
        sample.loss_mask = row_proof.loss_mask
        rows.append(_row(forest, sample, row_proof, sample_id))
    return rows


def _report(
    forest: SessionForest, gathered: Gathered, dropped: Mapping[int, DroppedLeaf], count: Count
) -> SessionReport:
    empty_reason = "all_truncated" if gathered.leaves else "no_records"
    return SessionReport(
        session_id=forest.session_id,
        nodes=len(forest.turns),
        leaves=len(gathered.leaves),
        rows=len(gathered.rows),
        dropped=tuple(dropped.values()),
        count=count,
        empty_reason=None if gathered.rows else empty_reason,
    )


def _dropped(gathered: Gathered) -> dict[int, DroppedLeaf]:
    kept = {sample.leaf.last.seq for sample in gathered.rows}
    dropped = {}
    for leaf in gathered.leaves:
        seq = leaf.last.seq
        if seq not in kept:
            over_budget = seq not in gathered.fitting
            dropped[seq] = _dropped_leaf(leaf, over_budget=over_budget, picked=seq in gathered.picked)
    return dropped


def _dropped_leaf(leaf: Leaf, *, over_budget: bool, picked: bool) -> DroppedLeaf:
    later = superseded_by(leaf)
    if over_budget:
        return DroppedLeaf(leaf.last.seq, Reason.MAX_SEQ_LEN, later)
    if picked:
        return DroppedLeaf(leaf.last.seq, Reason.POSTPROCESSOR_DROPPED, later)
    return DroppedLeaf(leaf.last.seq, Reason.NOT_PICKED if later is None else Reason.SUPERSEDED, later)


def _elsewhere(
    forest: SessionForest, gathered: Gathered, dropped: Mapping[int, DroppedLeaf]
) -> dict[int, Reason]:
    """Why the nodes that stand in no row do not. Only the leaf itself is superseded, what led to it is
    not."""
    reasons: dict[int, Reason] = {}
    if forest.policy == "rollback":
        reasons = {turn.seq: Reason.ROLLED_BACK for turn in forest.turns}
    for leaf in gathered.leaves:
        gone = dropped.get(leaf.last.seq)
        if gone is None:
            continue
        above = Reason.NOT_PICKED if gone.reason is Reason.SUPERSEDED else gone.reason
        for turn in leaf.turns:
            reason = gone.reason if turn is leaf.last else above
            reasons[turn.seq] = nearest(reason, reasons.get(turn.seq, reason))
    return reasons


def _row(forest: SessionForest, sample: Sample, proof: RowProof, sample_id: str) -> SampleRow:
    leaf = sample.leaf
    return SampleRow(
        sample_id=sample_id,
        session_id=forest.session_id,
        rollout_id=forest.rollout_id or forest.session_id,
        group_id=forest.group_id,
        attempt_id=forest.attempt_id,
        labels=forest.labels,
        leaf=leaf.last.seq,
        path=tuple(turn.seq for turn in leaf.turns),
        root_class=leaf.turns[0].root_class,
        agent=leaf.last.agent,
        status=str(sample.status),
        stopped_at=sample.stop.seq if sample.stop else None,
        stopped_reason=sample.stop.reason if sample.stop else None,
        tokens=sample.tokens,
        response_length=sample.response_length,
        loss_mask=proof.loss_mask,
        logprobs=np.nan_to_num(sample.rollout_log_probs, nan=0.0, posinf=0.0, neginf=0.0),
        response=sample.response,
        reward=sample.reward,
        rewards=(*leaf.last.rewards, *forest.rewards),
        weight_versions=tuple(sample.weight_versions),
        turns=_turns(sample, proof),
        generated=proof.count.generated,
        trained=proof.count.trained,
        masked=proof.count.masked,
        unsampled=proof.unsampled,
        cached_tokens=sample.prefix_cache_info.cached_tokens,
        prompt_tokens=sample.prefix_cache_info.total_prompt_tokens,
        speculative=sample.spec_info,
        metadata=_metadata(forest, sample),
        routed_experts=sample.rollout_routed_experts,
        indexer_topk=sample.rollout_indexer_topk,
    )


def _turns(sample: Sample, proof: RowProof) -> tuple[RowTurn, ...]:
    kept = kept_of(sample)
    return tuple(
        RowTurn(
            seq=turn.seq,
            parent=turn.parent,
            response_id=turn.response_id,
            prompt_length=start,
            completion_length=turn.completion.size,
            kept=kept.get(turn.seq, 0),
            trained=proof.trained_by_turn[turn.seq],
            finish_reason=turn.finish_reason,
            weight_version=turn.weight_version,
            weight_version_dispatch=turn.weight_version_dispatch,
            agent=turn.agent,
            rewards=turn.rewards,
        )
        for turn, start in prompt_lengths(sample.leaf)
    )


def _metadata(forest: SessionForest, sample: Sample) -> JsonObject:
    metadata = {key: value for key, value in sample.metadata.items() if key not in _COLUMNS}
    if forest.healer is None:
        return metadata
    return metadata | history_metadata(forest.healer, forest.causes)
