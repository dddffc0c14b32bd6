"""Which call gets which reward: the policies by name. An unknown name matches nothing and is no error."""

from collections.abc import Callable, Collection
from typing import Any

from trainer_export.traces.rewards import first_occurrence, first_sibling
from trainer_export.traces.tree import Node

FIRST_OCCURRENCE = "first_occurrence"
FIRST_SIBLING = "first_sibling"

RewardMatch = Callable[[Node, Collection[str]], dict[str, Any]]

POLICIES: dict[str, RewardMatch] = {
    FIRST_OCCURRENCE: first_occurrence.match,
    FIRST_SIBLING: first_sibling.match,
}


def match_rewards(policy: Any, root: Node, call_ids: Collection[str]) -> dict[str, Any]:
    """Reward by span id; spans without a reward are left out."""
    rule = POLICIES.get(policy)
    return {} if rule is None else rule(root, call_ids)
