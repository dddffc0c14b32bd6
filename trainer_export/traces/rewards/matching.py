"""Which call gets which reward: the policies by name. An unknown name matches nothing and is no error."""

from collections.abc import Callable, Collection
from typing import Any

from trainer_export.traces.rewards import first_occurrence, first_sibling
from trainer_export.traces.rewards.given import Given
from trainer_export.traces.tree import Node

FIRST_OCCURRENCE = "first_occurrence"
FIRST_SIBLING = "first_sibling"

RewardMatch = Callable[[Node, Collection[str]], dict[str, Given]]

POLICIES: dict[str, RewardMatch] = {
    FIRST_OCCURRENCE: first_occurrence.match,
    FIRST_SIBLING: first_sibling.match,
}


def match_rewards(policy: Any, root: Node, call_ids: Collection[str]) -> dict[str, Any]:
    """Reward by span id; spans without a reward are left out."""
    return {call_id: given.value for call_id, given in given_rewards(policy, root, call_ids).items()}


def given_rewards(policy: Any, root: Node, call_ids: Collection[str]) -> dict[str, Given]:
    """The same with the spans that the rewards come from."""
    rule = POLICIES.get(policy)
    return {} if rule is None else rule(root, call_ids)
