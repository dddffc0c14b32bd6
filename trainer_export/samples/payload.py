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
from trainer_export.samples.postprocessors.default import with_agent
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


def samples_payload(
    forest: SessionForest,
    arguments: SamplesArguments,
    hooks: Hooks,
    rules: AssemblyRules,
    cache: SampleCache | None = None,
) -> SamplesPayload:
    """The payload of a session. Raises SamplesFailed (422) where assembly or a hook refuses."""
    hooked = forest.policy != "rollback"
    agent = agent_metadata(forest, arguments.metadata if hooked else None)
    metadata = dict(forest.metadata)
    if hooked and agent is not None:
        metadata["agent"] = agent
    leaves = leaves_of(forest)
    if not leaves:
        return SamplesPayload([], metadata, "no_records", hooked)
    samples = raw_samples(forest, leaves, replace(rules, max_seq_len=arguments.max_seq_len), cache)
    if hooked and samples:
        samples = hooks.run(samples, metadata)
    elif agent:
        for sample in samples:
            sample.metadata = with_agent(sample.metadata, agent)
    return SamplesPayload(samples, metadata, None if samples else "all_truncated", hooked)


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
