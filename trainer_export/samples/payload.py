"""The samples of one session as the reference's `POST …/samples` gives them.

`rollback`: the active path, one merged sample, no hooks. `tree` and `linear`: every leaf, then picker and
post-processor. Nothing that only native rows carry (`stopped_at`, proof, weights) stands in here.
"""

from dataclasses import dataclass, replace
from typing import Any

from trainer_export.samples.arguments import SamplesArguments
from trainer_export.samples.assemble import assemble
from trainer_export.samples.cache import SampleCache
from trainer_export.samples.forest import leaves_of
from trainer_export.samples.hooks import Hooks
from trainer_export.samples.postprocessors.default import ride_along
from trainer_export.samples.rewards import scalar_reward
from trainer_export.samples.rules import AssemblyRules
from trainer_export.samples.sample import Sample
from trainer_export.samples.values import JsonObject, Leaf, SessionForest


@dataclass(frozen=True, slots=True)
class SamplesPayload:
    """What the codec writes."""

    samples: list[Sample]
    session_metadata: JsonObject
    empty_reason: str | None
    """`no_records` or `all_truncated` where there are no samples."""
    with_reward: bool
    """The wire form of `tree` and `linear` has a `reward` per sample, that of `rollback` has none."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """Every step from leaves to rows, for whoever has to account for what is gone."""

    leaves: list[Leaf]
    fitting: frozenset[int]
    """Seqs of those that the token budget leaves something of."""
    picked: frozenset[int]
    """Seqs of those that the picker kept."""
    rows: list[Sample]
    session_metadata: JsonObject


def samples_payload(
    forest: SessionForest,
    arguments: SamplesArguments,
    hooks: Hooks,
    rules: AssemblyRules,
    cache: SampleCache | None = None,
) -> SamplesPayload:
    """The payload of a session. Raises SamplesFailed (422) where assembly or a hook refuses."""
    gathered = gather(forest, arguments, hooks, rules, cache)
    empty_reason = "all_truncated" if gathered.leaves else "no_records"
    return SamplesPayload(
        samples=gathered.rows,
        session_metadata=gathered.session_metadata,
        empty_reason=None if gathered.rows else empty_reason,
        with_reward=forest.policy != "rollback",
    )


def gather(
    forest: SessionForest,
    arguments: SamplesArguments,
    hooks: Hooks,
    rules: AssemblyRules,
    cache: SampleCache | None = None,
) -> Gathered:
    """Leaves, raw samples, and what the hooks make of them; no hook runs on nothing."""
    leaves = leaves_of(forest)
    raw = raw_samples(forest, leaves, replace(rules, max_seq_len=arguments.max_seq_len), cache)
    fitting = frozenset(sample.leaf.last.seq for sample in raw)
    metadata = dict(forest.metadata)
    if forest.policy == "rollback":
        for sample in raw:
            ride_along(sample, forest.finish_metadata)
        return Gathered(leaves, fitting, fitting, raw, metadata)
    agent = agent_metadata(forest, arguments.metadata)
    if agent is not None:
        metadata["agent"] = agent
    if not raw:
        return Gathered(leaves, fitting, fitting, [], metadata)
    result = hooks.run(raw, metadata)
    return Gathered(leaves, fitting, result.picked, result.rows, metadata)


def agent_metadata(forest: SessionForest, given: Any) -> Any:
    """The driver's metadata: what `finish` was told, overlaid by what this request says."""
    if not forest.finish_metadata:
        return given
    if given is None:
        return dict(forest.finish_metadata)
    return {**forest.finish_metadata, **given} if isinstance(given, dict) else given


def raw_samples(
    forest: SessionForest, leaves: list[Leaf], rules: AssemblyRules, cache: SampleCache | None = None
) -> list[Sample]:
    """One sample per leaf in commit order; leaves that the budget leaves nothing of are missing."""
    found = []
    for leaf in leaves:
        sample = cache.sample(forest.session_id, leaf, rules) if cache else assemble(leaf, rules)
        if sample is not None:
            found.append(sample)
            sample.reward = scalar_reward(leaf, forest.rewards)
            if forest.policy != "rollback":
                sample.metadata |= _leaf_metadata(forest, leaf)
    return found


def _leaf_metadata(forest: SessionForest, leaf: Leaf) -> JsonObject:
    last = leaf.last
    metadata: JsonObject = {
        "accumulated_token_ids": leaf.accumulated_ids,
        "leaf": {
            "node_id": last.seq,
            "parent": last.parent,
            "path_node_ids": [turn.seq for turn in leaf.turns],
            "response_id": last.response_id,
        },
    }
    if last.seq in forest.mismatches:
        metadata["tito_session_mismatch"] = forest.mismatches[last.seq]
    if forest.policy == "linear" and forest.healer is not None:
        metadata["linear_healer"] = dict(forest.healer)
    return metadata
