"""FIRST_OCCURRENCE: a reward goes to the call latest by start that ended before it and has none yet.

The tree is not looked at. A second reward neither overwrites nor adds: it goes to the call before.
"""

from collections.abc import Collection

from trainer_export.traces.rewards import reward_value
from trainer_export.traces.rewards.given import Given
from trainer_export.traces.rewards.open_calls import OpenCalls
from trainer_export.traces.tree import Node


def match(root: Node, call_ids: Collection[str]) -> dict[str, Given]:
    """Reward by span id. Unknown start times raise TypeError."""
    by_start = sorted(root.walk(), key=lambda node: node.span.start_time)  # type: ignore[arg-type, return-value]
    rewards: dict[str, Given] = {}
    waiting = OpenCalls(len(by_start), rewards)
    for node in by_start:
        if node.id in call_ids:
            waiting.add(node.id, node.span.end_time)
        value = reward_value(node.span)
        if value is None:
            continue
        call_id = waiting.take(node.span.start_time)
        if call_id is not None:
            rewards[call_id] = Given(value, node.id)
    return rewards
