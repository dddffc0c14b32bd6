"""Flat spans -> one tree."""

import pytest

from tests.traces.making import session, span
from trainer_export.traces.parsing import parse_spans
from trainer_export.traces.tree import Node, build_tree


def tree(*spans):
    return build_tree(parse_spans(list(spans)))


def ids(node: Node):
    return {node.id: [ids(child) for child in node.children]}


def test_no_spans():
    with pytest.raises(ValueError, match=r"^No spans provided to create TraceTree\.$"):
        tree()


def test_only_cycles():
    with pytest.raises(ValueError, match=r"^No root spans found in the trace\.$"):
        tree(span("a", "b"), span("b", "a"))


def test_children_keep_list_order():
    assert ids(tree(session(), span("b", "s", 5.0), span("a", "s", 1.0))) == {"s": [{"b": []}, {"a": []}]}


def test_child_before_parent_in_the_list():
    assert ids(tree(span("a", "s"), session())) == {"s": [{"a": []}]}


def test_missing_parent_becomes_a_virtual_node_that_spans_its_children():
    root = tree(span("a", "gone", 5.0, 6.0, sequence=4), span("b", "gone", 1.0, 9.0))
    assert ids(root) == {"gone": [{"a": []}, {"b": []}]}
    assert (root.span.name, root.span.attributes) == ("agentlightning.virtual", {})
    assert (root.span.start_time, root.span.end_time, root.span.sequence_id) == (1.0, 9.0, 4)


def test_virtual_node_ignores_unknown_times_of_children():
    root = tree(span("a", "gone", None, 6.0), span("b", "gone", 1.0, 2.0))
    assert (root.span.start_time, root.span.end_time) == (1.0, 6.0)


def test_several_roots_take_start_of_the_first_and_end_of_the_last():
    root = tree(span("a", None, 5.0, 9.0), span("b", None, 1.0, 3.0))
    assert ids(root) == {"virtual-root": [{"a": []}, {"b": []}]}
    assert (root.span.start_time, root.span.end_time) == (5.0, 3.0)


def test_real_roots_stand_before_virtual_parents():
    root = tree(span("orphan", "gone"), span("root"))
    assert ids(root) == {"virtual-root": [{"root": []}, {"gone": [{"orphan": []}]}]}


def test_empty_parent_id_is_a_missing_parent():
    assert ids(tree(session(), span("a", ""))) == {"virtual-root": [{"s": []}, {"": [{"a": []}]}]}


def test_cycle_beside_a_root_vanishes():
    assert ids(tree(session(), span("a", "b"), span("b", "a"), span("c", "s"))) == {"s": [{"c": []}]}


def test_span_listed_twice_stands_twice_with_the_last_payload():
    root = tree(session(), span("a", "s", name="first"), span("x", "a"), span("a", "s", name="second"))
    assert ids(root) == {"s": [{"a": [{"x": []}]}, {"a": [{"x": []}]}]}
    assert [child.span.name for child in root.children] == ["second", "second"]
    assert root.children[0] is not root.children[1]


def test_cycle_below_a_root_is_refused():
    with pytest.raises(RecursionError):
        tree(span("a"), span("b", "a"), span("a", "b"))


def test_repeated_spans_cannot_explode():
    chain = [session()]
    for depth in range(40):
        parent = "s" if depth == 0 else f"n{depth - 1}"
        chain += [span(f"n{depth}", parent), span(f"n{depth}", parent)]
    with pytest.raises(ValueError, match="multiply each other"):
        tree(*chain)


def test_a_chain_of_any_length_is_built_and_walked():
    chain = [span("n0")] + [span(f"n{depth}", f"n{depth - 1}") for depth in range(1, 20_000)]
    assert [node.id for node in tree(*chain).walk()][-1] == "n19999"
