"""Spans of a tracer: tree, repair, selection, conversion, rewards.

Two adapters that differ in what they offer: the tracer's has the repair as an option and always drops calls
without id inside a call; the tree's own conversion always repairs, and knows a final reward.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from trainer_export.traces.adapters.better import COMPAT, convert_better, is_better
from trainer_export.traces.adapters.options import read_options
from trainer_export.traces.adapters.registry import SPANS, adapter
from trainer_export.traces.parsing import parse_spans
from trainer_export.traces.repair import repair_hierarchy
from trainer_export.traces.rewards.matching import FIRST_OCCURRENCE
from trainer_export.traces.selection import DEFAULT_CALL_PATTERN, SelectionRules
from trainer_export.traces.span import Span
from trainer_export.traces.trajectory import TrajectoryRules, to_trajectory
from trainer_export.traces.tree import Node, build_tree

TRACER = "TracerTraceToTriplet"
TRAJECTORY = "TraceTree.to_trajectory"

_SHARED = {
    "mode": COMPAT,
    "llm_call_match": DEFAULT_CALL_PATTERN,
    "agent_match": None,
    "exclude_llm_call_in_reward": True,
    "reward_match": FIRST_OCCURRENCE,
    "_skip_empty_token_spans": False,
}
_OFFERED: dict[str, dict[str, Any]] = {
    TRACER: {"repair_hierarchy": True},
    TRAJECTORY: {"dedup_llm_call": True, "final_reward": None},
}
_EVERY = {name: value for offered in _OFFERED.values() for name, value in offered.items()}
"""What an adapter does not offer is as it stands here."""


@adapter(TRACER, SPANS)
def convert_tracer(source: Any, options: Mapping[str, Any]) -> Any:
    """Triplets in tree order."""
    return _convert(TRACER, source, options)


@adapter(TRAJECTORY, SPANS)
def convert_trajectory(source: Any, options: Mapping[str, Any]) -> Any:
    """Triplets in tree order."""
    return _convert(TRAJECTORY, source, options)


def prepared(name: str, spans: Sequence[Span], options: Mapping[str, Any]) -> tuple[Node, TrajectoryRules]:
    """The tree as an adapter converts it, and the rules for it."""
    chosen = _EVERY | read_options(name, options, _SHARED | _OFFERED[name])
    root = build_tree(spans)
    if chosen["repair_hierarchy"]:
        repair_hierarchy(root)
    selection = SelectionRules(
        llm_call_match=chosen["llm_call_match"],
        agent_match=chosen["agent_match"],
        exclude_llm_call_in_reward=bool(chosen["exclude_llm_call_in_reward"]),
        dedup_llm_call=bool(chosen["dedup_llm_call"]),
    )
    return root, TrajectoryRules(
        selection=selection,
        reward_match=chosen["reward_match"],
        final_reward=chosen["final_reward"],
        skip_empty_token_spans=bool(chosen["_skip_empty_token_spans"]),
    )


def _convert(name: str, source: Any, options: Mapping[str, Any]) -> Any:
    if is_better(options):
        return convert_better(name, source, options)
    return [triplet.to_json() for triplet in to_trajectory(*prepared(name, parse_spans(source), options))]
