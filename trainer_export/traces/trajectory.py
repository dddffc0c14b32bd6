"""A tree -> its triplets: select the calls, convert them, match the rewards. Output is in tree order."""

from dataclasses import dataclass, field
from typing import Any

from trainer_export.traces.conversion.call import triplet_of
from trainer_export.traces.rewards.matching import FIRST_OCCURRENCE, match_rewards
from trainer_export.traces.selection import SelectionRules, select_calls
from trainer_export.traces.tree import Node
from trainer_export.traces.triplet import Triplet


@dataclass(frozen=True, slots=True)
class TrajectoryRules:
    """How calls and rewards are found."""

    selection: SelectionRules = field(default_factory=SelectionRules)
    reward_match: Any = FIRST_OCCURRENCE
    """Name of a matching policy; an unknown one matches nothing."""
    final_reward: Any = None
    """Overwrites the reward of the last triplet."""
    skip_empty_token_spans: bool = False
    """Drop calls without prompt or response ids before rewards are matched."""


def to_trajectory(root: Node, rules: TrajectoryRules) -> list[Triplet]:
    """Rewards are kept per span id: a span that stands in the tree twice shows its reward twice."""
    calls = select_calls(root, rules.selection)
    found = [(call.node.id, triplet_of(call.node.span.attributes, call.agent)) for call in calls]
    if rules.skip_empty_token_spans:
        found = [(span_id, step) for span_id, step in found if _has_tokens(step)]
    rewards = match_rewards(rules.reward_match, root, {span_id for span_id, _ in found})
    triplets = [step.with_reward(rewards.get(span_id)) for span_id, step in found]
    if rules.final_reward is not None and triplets:
        triplets[-1] = triplets[-1].with_reward(rules.final_reward)
    return triplets


def _has_tokens(step: Triplet) -> bool:
    return bool(step.prompt["token_ids"]) and bool(step.response["token_ids"])
