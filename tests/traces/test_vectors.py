"""The recorded answers of the reference, to the last key."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from trainer_export.traces.agents import agent_name
from trainer_export.traces.answers import answer
from trainer_export.traces.parsing import parse_spans
from trainer_export.traces.repair import repair_hierarchy
from trainer_export.traces.selection import SelectionRules, select_calls
from trainer_export.traces.tree import Node, build_tree

VECTORS = sorted((Path(__file__).parent.parent / "vectors" / "triplets").glob("*.json"))
CASES = [pytest.param(json.loads(path.read_text()), id=path.stem) for path in VECTORS]
WITH_TREES = [case for case in CASES if case.values[0]["extras"]]


def same(ours: Any, theirs: Any) -> bool:
    """Exact, except that floats may differ in rounding."""
    if isinstance(theirs, float) and isinstance(ours, int | float) and not isinstance(ours, bool):
        return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(theirs, dict):
        return (
            isinstance(ours, dict)
            and ours.keys() == theirs.keys()
            and all(same(ours[key], theirs[key]) for key in theirs)
        )
    if isinstance(theirs, list):
        return isinstance(ours, list) and len(ours) == len(theirs) and all(map(same, ours, theirs))
    return type(ours) is type(theirs) and ours == theirs


def test_all_twelve_are_here():
    assert len(VECTORS) == 12


@pytest.mark.parametrize("case", CASES)
def test_triplets(case):
    ours = json.loads(json.dumps(answer(case["adapter"], case["options"], case["input_spans"])))
    assert same(ours, case["expected"]), ours


@pytest.mark.parametrize("case", WITH_TREES)
def test_tree_as_built_and_repaired(case):
    root = build_tree(parse_spans(case["input_spans"]))
    assert drawn(root) == case["extras"]["tree_built"]
    repair_hierarchy(root)
    if "tree_repaired" in case["extras"]:
        assert drawn(root) == case["extras"]["tree_repaired"]


@pytest.mark.parametrize("case", WITH_TREES)
def test_selected_calls(case):
    root = build_tree(parse_spans(case["input_spans"]))
    if case["options"].get("repair_hierarchy", True):
        repair_hierarchy(root)
    rules = SelectionRules(agent_match=case["options"].get("agent_match"))
    selected = [{"span_id": found.node.id, "agent_name": found.agent} for found in select_calls(root, rules)]
    assert selected == case["extras"]["selected_calls"]


@pytest.mark.parametrize("case", CASES)
def test_input_is_not_changed(case):
    before = json.dumps(case["input_spans"])
    answer(case["adapter"], case["options"], case["input_spans"])
    assert json.dumps(case["input_spans"]) == before


def drawn(node: Node) -> dict[str, Any]:
    return {
        "id": node.id,
        "name": node.span.name,
        "agent": agent_name(node.span),
        "start_time": node.span.start_time,
        "end_time": node.span.end_time,
        "children": [drawn(child) for child in node.children],
    }
