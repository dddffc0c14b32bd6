"""The walk finds what brute force finds and what the keys find, on random forests and for every matcher."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.errors import MatcherRaised
from sessions_app.history.matchers.custom import CustomMatcher
from sessions_app.history.matchers.linear_form import LINEAR_FORM
from sessions_app.history.matchers.registry import BUILT_IN_MATCHERS
from sessions_app.history.walk import AttachPoint, PathNode, match_length, walk
from tests.history.forest_model import ForestModel, Found
from tests.history.messages import assistant, call, calling, user

MATCHERS = [*BUILT_IN_MATCHERS.values(), LINEAR_FORM]
STRICT = BUILT_IN_MATCHERS["strict"]

few_messages = st.sampled_from(
    [
        user("a"),
        user("b"),
        user(""),
        user(None),
        user(1),
        user(True),
        {"role": "developer", "content": "a"},
        {"role": "system", "content": "a"},
        user([{"type": "text", "text": "a"}]),
        assistant("a"),
        assistant("a", reasoning_content="r"),
        calling(call('{"a":1}')),
        calling(call('{"a": 1.0}')),
        calling(call('{"a":true}')),
        calling(call({"a": 1})),
        calling(call({"a": True})),
        calling(call({"a": 2})),
        calling(call('{"a":2}')),
    ]
)
deltas = st.lists(few_messages, min_size=1, max_size=3)


@st.composite
def forests_and_requests(draw):
    """A forest whose paths repeat each other often, and a request that follows one of them for a while."""
    nodes = []
    for seq in range(draw(st.integers(0, 7))):
        nodes.append(
            (draw(st.one_of(st.none(), st.integers(0, seq - 1)) if seq else st.none()), draw(deltas))
        )
    request = []
    seq = draw(st.integers(0, len(nodes) - 1)) if nodes else None
    while seq is not None:
        parent, delta = nodes[seq]
        request, seq = delta + request, parent
    cut = draw(st.integers(0, len(request)))
    return nodes, request[:cut] + draw(st.lists(few_messages, max_size=3))


@pytest.mark.parametrize("matcher", MATCHERS, ids=lambda matcher: matcher.name)
@settings(max_examples=300, deadline=None)
@given(drawn=forests_and_requests())
def test_walk_brute_force_and_keys_agree(matcher, drawn):
    nodes, request = drawn
    forest = ForestModel(matcher)
    for parent, delta in nodes:
        forest.add(parent, delta)
    point = walk(forest.nodes, request, matcher)
    found = Found(point.seq, point.matched)
    assert found == forest.by_brute_force(request)
    assert forest.by_key(request) in (None, found)
    assert point.shared == max((match_length(path, request, matcher) for path in forest.paths), default=0)


def forest(*rows):
    return [PathNode(seq, parent, delta) for seq, (parent, delta) in enumerate(rows)]


def test_an_empty_forest_is_a_new_root():
    assert walk([], [user("a")], STRICT) == AttachPoint(seq=None, matched=0, closest=None, shared=0)


def test_a_delta_that_matches_in_part_is_no_candidate_but_the_closest():
    nodes = forest((None, [user("a"), assistant("b")]), (0, [user("c"), assistant("d")]))
    request = [user("a"), assistant("b"), user("c"), assistant("edited")]
    assert walk(nodes, request, STRICT) == AttachPoint(seq=0, matched=2, closest=1, shared=3)


def test_of_twins_the_later_is_extended():
    twin = [user("a"), assistant("b")]
    assert walk(forest((None, twin), (None, twin)), [*twin, user("c")], STRICT).seq == 1


def test_depth_wins_over_commit_order():
    nodes = forest((None, [user("a"), assistant("b")]), (0, [user("c"), assistant("d")]), (None, [user("a")]))
    request = [user("a"), assistant("b"), user("c"), assistant("d"), user("e")]
    assert walk(nodes, request, STRICT).seq == 1


def test_an_exact_resend_attaches_to_the_last_node():
    nodes = forest((None, [user("a"), assistant("b")]))
    assert walk(nodes, [user("a"), assistant("b")], STRICT) == AttachPoint(
        seq=0, matched=2, closest=0, shared=2
    )


def test_a_root_longer_than_the_request_is_still_compared():
    calls = []

    def recording(stored, replayed):
        calls.append((stored["content"], replayed["content"]))
        return True

    nodes = forest((None, [user("a"), user("b"), assistant("c")]), (None, [user("d"), assistant("e")]))
    assert walk(nodes, [user("x")], CustomMatcher("a.recording", recording)).seq is None
    assert calls == [("a", "x"), ("d", "x")]


def test_an_error_of_the_matcher_surfaces_from_a_root_longer_than_the_request():
    def raising(stored, replayed):
        raise ValueError

    with pytest.raises(MatcherRaised):
        walk(forest((None, [user("a"), assistant("b")])), [user("x")], CustomMatcher("a.raising", raising))


def test_a_chain_of_100_000_nodes_is_walked():
    count = 100_000
    turns = [[user(f"q{at}"), assistant(f"r{at}")] for at in range(count)]
    nodes = [PathNode(at, at - 1 if at else None, turn) for at, turn in enumerate(turns)]
    request = [message for turn in turns for message in turn] + [user("more")]
    started = time.perf_counter()
    point = walk(nodes, request, BUILT_IN_MATCHERS["role_content_only"])
    assert (point.seq, point.matched) == (count - 1, 2 * count)
    assert time.perf_counter() - started < 10


def test_match_length_stops_at_the_first_difference_and_at_the_shorter_end():
    stored = [user("a"), assistant("b"), user("c")]
    assert match_length(stored, [user("a"), assistant("x"), user("c")], STRICT) == 1
    assert match_length(stored, [user("a")], STRICT) == 1
    assert match_length(stored[:2], stored, STRICT) == 2
    assert match_length([], stored, STRICT) == 0
