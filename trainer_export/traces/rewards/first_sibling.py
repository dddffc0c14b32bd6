"""FIRST_SIBLING: the rule of FIRST_OCCURRENCE among the children of each node, in child order instead of
time order.

A reward listed before its call, one level away from it, or without a parent is lost.
"""

from collections.abc import Collection

from trainer_export.traces.rewards import reward_value
from trainer_export.traces.rewards.given import Given
from trainer_export.traces.rewards.open_calls import OpenCalls
from trainer_export.traces.tree import Node


def match(root: Node, call_ids: Collection[str]) -> dict[str, Given]:
    """Reward by span id."""
    rewards: dict[str, Given] = {}
    for parent in root.walk():
        _match_children(parent.children, call_ids, rewards)
    return rewards


def _match_children(children: list[Node], call_ids: Collection[str], rewards: dict[str, Given]) -> None:
    waiting = OpenCalls(len(children), rewards)
    for child in children:
        if child.id in call_ids:
            waiting.add(child.id, child.span.end_time)
        value = reward_value(child.span)
        if value is None:
            continue
        call_id = waiting.take(child.span.start_time)
        if call_id is not None:
            rewards[call_id] = Given(value, child.id)
