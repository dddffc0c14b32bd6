"""The tree's own conversion: always repaired, with `dedup_llm_call` and `final_reward` as options."""

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

NAME = "TraceTree.to_trajectory"

_DEFAULTS = {
    "mode": COMPAT,
    "llm_call_match": DEFAULT_CALL_PATTERN,
    "agent_match": None,
    "exclude_llm_call_in_reward": True,
    "dedup_llm_call": True,
    "reward_match": FIRST_OCCURRENCE,
    "final_reward": None,
    "_skip_empty_token_spans": False,
}


@adapter(NAME, SPANS)
def convert(source: Any, options: Mapping[str, Any]) -> Any:
    """Triplets in tree order."""
    if is_better(options):
        return convert_better(NAME, source, options)
    return [triplet.to_json() for triplet in to_trajectory(*prepared(parse_spans(source), options))]


def prepared(spans: Sequence[Span], options: Mapping[str, Any]) -> tuple[Node, TrajectoryRules]:
    """The tree as it is converted, and the rules for it."""
    chosen = read_options(NAME, options, _DEFAULTS)
    root = build_tree(spans)
    repair_hierarchy(root)
    selection = SelectionRules(
        chosen["llm_call_match"],
        chosen["agent_match"],
        bool(chosen["exclude_llm_call_in_reward"]),
        bool(chosen["dedup_llm_call"]),
    )
    return root, TrajectoryRules(
        selection, chosen["reward_match"], chosen["final_reward"], bool(chosen["_skip_empty_token_spans"])
    )
