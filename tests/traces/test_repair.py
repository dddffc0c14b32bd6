"""Repair by the tightest enclosing interval, checked against a literal reading of the rule."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.traces.making import agent, call, response_ids, reward, session, span
from trainer_export.traces import enclosing, repair
from trainer_export.traces.parsing import parse_spans
from trainer_export.traces.repair import repair_hierarchy
from trainer_export.traces.tree import Node, build_tree


def repaired(spans):
    root = build_tree(parse_spans(spans))
    repair_hierarchy(root)
    return ids(root)


def ids(node: Node):
    return {node.id: [ids(child) for child in node.children]}


def literally(node: Node) -> None:
    """The rule, word by word and quadratic."""
    while len(node.children) == 1:
        node = node.children[0]
    for child in list(node.children):
        if len(node.children) == 1:
            break
        best, least = None, float("inf")
        for other in list(node.walk()):
            if other is node or other.id == child.id:
                continue
            if other.span.start_time <= child.span.start_time and other.span.end_time >= child.span.end_time:
                slack = (
                    other.span.end_time - child.span.end_time + child.span.start_time - other.span.start_time
                )
                if 0 < slack < least:
                    best, least = other, slack
        if best is not None:
            node.children.remove(child)
            if best not in list(child.walk()):
                best.children.append(child)


@st.composite
def traces(draw):
    step = draw(st.sampled_from([0.1, 1.0]))
    count = draw(st.integers(2, 14))
    spans = [span("n0", None, 0.0, 20 * step)]
    for index in range(1, count):
        parent = draw(st.integers(0, index - 1)) if draw(st.booleans()) else 0
        start = draw(st.integers(0, 12)) * step
        end = start + draw(st.integers(-1, 8)) * step
        spans.append(span(f"n{index}", f"n{parent}", start, end))
    return spans


@settings(max_examples=400, deadline=None)
@given(traces(), st.sampled_from([0, 2, 500]), st.sampled_from([0, 1, 128]))
def test_agrees_with_the_literal_rule(spans, steps, asked):
    """However soon the search gives way to a pass over all intervals, and asking nodes to numbering them."""
    root = build_tree(parse_spans(spans))
    literally(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(enclosing, "_MOST_STEPS", steps)
        patch.setattr(repair, "_MOST_ASKED", asked)
        assert repaired(spans) == ids(root)


def test_clocks_that_are_years_apart_are_compared_as_the_rule_does():
    """Sums of such times are rounded, so the search must not skip by sums of its own."""
    now = 1_760_000_000.123
    spans = [span("n0", None, 0.0, 20.0), span("n1", "n0", now, now), span("n2", "n0", now + 0.001, 2.0)]
    assert repaired([*spans, span("n3", "n0", 0.0, 3.5)]) == {"n0": [{"n1": [{"n2": []}]}, {"n3": []}]}


def test_floating_call_goes_below_its_agent():
    assert repaired([session(), agent("a", "s", 1, 10, "x"), call("c", "s", 2, 3)]) == {
        "s": [{"a": [{"c": []}]}]
    }


def test_tightest_wins():
    spans = [session(), agent("a", "s", 1, 10, "x"), agent("b", "a", 1.5, 9, "y"), call("c", "s", 2, 3)]
    assert repaired(spans) == {"s": [{"a": [{"b": [{"c": []}]}]}]}


def test_equal_intervals_do_not_enclose():
    assert repaired([session(), span("a", "s", 1, 2), span("b", "s", 1, 2)]) == {"s": [{"a": []}, {"b": []}]}


def test_tie_goes_to_the_first_in_depth_first_order():
    spans = [session(), span("b", "s", 0, 4), span("a", "s", 1, 5), call("c", "s", 2, 3)]
    assert repaired(spans) == {"s": [{"b": [{"c": []}]}, {"a": []}]}


def test_stops_at_one_child():
    spans = [session(), call("c", "s", 2, 3), agent("a", "s", 1, 10, "x")]
    assert repaired(spans) == {"s": [{"a": [{"c": []}]}]}


def test_starts_below_single_children():
    spans = [
        span("w", None, 0, 100),
        span("s", "w", 0, 100),
        agent("a", "s", 1, 10, "x"),
        call("c", "s", 2, 3),
    ]
    assert repaired(spans) == {"w": [{"s": [{"a": [{"c": []}]}]}]}


def test_only_one_level():
    spans = [
        session(),
        span("g", "s", 0, 50),
        agent("a", "g", 1, 10, "x"),
        call("c", "g", 2, 3),
        span("z", "s", 60),
    ]
    assert repaired(spans) == {"s": [{"g": [{"a": []}, {"c": []}]}, {"z": []}]}


def test_node_below_its_own_descendant_is_lost():
    spans = [session(), span("a", "s", 2, 3), call("c", "a", 1, 9), span("z", "s", 60)]
    assert repaired(spans) == {"s": [{"z": []}]}


def test_a_parentless_reward_disables_repair():
    spans = [session(), agent("a", "s", 1, 10, "x"), call("c", "s", 2, 3)]
    assert response_ids(spans, agent_match="x") == ["chatcmpl-c"]
    assert response_ids([*spans, reward("r", None, 99, 1.0)], agent_match="x") == []


@pytest.mark.parametrize("unknown", ["start_time", "end_time"])
def test_unknown_times_raise(unknown):
    spans = [session(), span("a", "s", 1, 10), call("c", "s", 2, 3) | {unknown: None}]
    with pytest.raises(TypeError):
        repaired(spans)


def test_unknown_end_that_is_never_compared():
    assert repaired(
        [session(), span("a", "s", 1, 3), span("b", "a", 5, 9) | {"end_time": None}, span("c", "s", 2, 2)]
    )


def floating(count: int):
    """A session, agents of equal length side by side, and their calls floating under the session."""
    spans = [session(float(count))]
    for index in range(count // 20):
        spans.append(agent(f"a{index}", "s", index * 20.0, index * 20.0 + 19, "x"))
    for index in range(count - len(spans)):
        spans.append(call(f"c{index}", "s", index + 0.25, index + 0.5))
    return spans


def parallel(count: int):
    """Agents that all run at the same time: every call is enclosed by each of them."""
    agents = [agent(f"a{index}", "s", 1.0, float(count), "x") for index in range(1000)]
    return [
        session(count + 1.0),
        *agents,
        *(call(f"c{index}", "s", index + 2, index + 2.5) for index in range(count - 1001)),
    ]


def nested(count: int):
    """Spans inside one another, innermost first, all floating."""
    return [
        session(3.0 * count),
        *(span(f"n{index}", "s", count - index, count + index + 1.0) for index in range(count - 1)),
    ]


def tied(count: int):
    """Agents that are all moved below one span, then calls that each of them encloses equally tightly."""
    half = count // 2
    starts = [index / 1024 for index in range(half)]
    agents = [agent(f"a{index}", "s", start, start + 64, "x") for index, start in enumerate(starts)]
    calls = [call(f"c{index}", "s", 32 + start / 8, 33 + start / 8) for index, start in enumerate(starts)]
    return [session(1e6), span("all", "s", 0.0, 1e5), *agents, *calls]


@pytest.mark.parametrize("shape", [floating, parallel, nested, tied])
def test_20000_spans_take_seconds(shape):
    root = build_tree(parse_spans(shape(20_000)))
    started = time.process_time()
    repair_hierarchy(root)
    assert time.process_time() - started < 15
