"""Which call gets which reward, checked against a literal reading of the rules."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.traces.making import agent, call, reward, rewards, session, triplets
from trainer_export.traces.parsing import parse_spans
from trainer_export.traces.rewards import reward_value
from trainer_export.traces.rewards.matching import match_rewards
from trainer_export.traces.tree import build_tree

CALLS = [session(), call("c1", "s", 1, 2), call("c2", "s", 3, 4), call("c3", "s", 5, 6)]


def test_goes_to_the_latest_call_that_ended():
    assert rewards([*CALLS, reward("r", "s", 4.5, 1.0)]) == {
        "chatcmpl-c1": None,
        "chatcmpl-c2": 1.0,
        "chatcmpl-c3": None,
    }


def test_a_second_reward_goes_to_the_call_before():
    spans = [*CALLS, reward("r1", "s", 7, 1.0), reward("r2", "s", 8, 2.0)]
    assert list(rewards(spans).values()) == [None, 2.0, 1.0]


def test_a_reward_during_a_call_goes_to_the_call_before():
    assert list(rewards([*CALLS, reward("r", "s", 5.5, 1.0)], repair_hierarchy=False).values()) == [
        None,
        1.0,
        None,
    ]


def test_the_end_of_the_call_may_equal_the_start_of_the_reward():
    assert list(rewards([*CALLS, reward("r", "s", 6, 1.0)], repair_hierarchy=False).values()) == [
        None,
        None,
        1.0,
    ]


def test_a_reward_before_all_calls_is_lost():
    assert set(rewards([*CALLS, reward("r", "s", 0.5, 1.0)]).values()) == {None}


def test_overlapping_calls_are_ordered_by_start():
    spans = [session(), call("long", "s", 1, 9), call("short", "s", 2, 3), reward("r", "s", 10, 1.0)]
    assert rewards(spans, repair_hierarchy=False) == {"chatcmpl-long": None, "chatcmpl-short": 1.0}


def test_a_call_of_zero_length_takes_its_own_reward():
    own = {"agentlightning.reward.0.name": "p", "agentlightning.reward.0.value": 1.0}
    zero = call("zero", "s", 3, 3, attributes=own)
    assert rewards([session(), call("c1", "s", 1, 2), zero]) == {"chatcmpl-c1": None, "chatcmpl-zero": 1.0}
    longer = call("long", "s", 3, 4, attributes=own)
    assert rewards([session(), call("c1", "s", 1, 2), longer]) == {"chatcmpl-c1": 1.0, "chatcmpl-long": None}


def test_calls_that_are_not_selected_take_no_reward():
    spans = [
        session(),
        agent("a", "s", 1, 10, "write"),
        call("c1", "a", 2, 3),
        agent("b", "s", 20, 30, "check"),
        call("c2", "b", 21, 22),
        reward("r", "b", 29, 1.0),
    ]
    assert rewards(spans, agent_match="write") == {"chatcmpl-c1": 1.0}


def test_calls_without_tokens_take_a_reward_unless_skipped():
    spans = [
        *CALLS[:3],
        call("c3", "s", 5, 6, attributes={"response_token_ids": []}),
        reward("r", "s", 9, 1.0),
    ]
    assert list(rewards(spans).values()) == [None, None, 1.0]
    assert list(rewards(spans, _skip_empty_token_spans=True).values()) == [None, 1.0]


def test_a_span_standing_twice_shows_its_reward_twice():
    twice = call("c", "s", 1, 2)
    del twice["attributes"]["gen_ai.response.id"]
    spans = [session(), twice, twice, reward("r", "s", 5, 1.0), reward("q", "s", 6, 2.0)]
    assert [item["reward"] for item in triplets(spans)] == [1.0, 1.0]


def test_a_rewarded_span_that_comes_again_takes_no_second_reward():
    own = {"agentlightning.reward.0.name": "p", "agentlightning.reward.0.value": 1.0}
    zero = call("zero", "s", 3, 3, attributes=own)
    del zero["attributes"]["gen_ai.response.id"]
    spans = [session(), call("c1", "s", 1, 2), zero, zero]
    assert [item["reward"] for item in triplets(spans)] == [1.0, 1.0, 1.0]


def test_siblings_go_by_list_order():
    spans = [session(), reward("r", "s", 9, 1.0), call("c", "s", 1, 2)]
    assert rewards(spans, reward_match="first_sibling") == {"chatcmpl-c": None}
    assert rewards(spans) == {"chatcmpl-c": 1.0}


def test_siblings_do_not_see_another_level():
    spans = [session(), agent("a", "s", 0, 5, "x"), call("c", "a", 1, 2), reward("r", "s", 9, 1.0)]
    assert rewards(spans, reward_match="first_sibling", repair_hierarchy=False) == {"chatcmpl-c": None}


def test_unknown_policy_matches_nothing():
    assert set(rewards([*CALLS, reward("r", "s", 9, 1.0)], reward_match="last").values()) == {None}


def test_final_reward_overwrites_the_last_in_output_order():
    spans = [*CALLS, reward("r", "s", 9, 1.0)]
    found = triplets(spans, "TraceTree.to_trajectory", final_reward=0.0)
    assert [item["reward"] for item in found] == [None, None, 0.0]
    assert triplets([session()], "TraceTree.to_trajectory", final_reward=1.0) == []


@st.composite
def flat_traces(draw):
    spans = [session()]
    for index in range(draw(st.integers(0, 12))):
        start = draw(st.integers(0, 8))
        if draw(st.booleans()):
            spans.append(call(f"c{index}", "s", start, start + draw(st.integers(0, 4))))
        else:
            spans.append(reward(f"r{index}", "s", start, draw(st.integers(0, 3))))
    return spans


def literally(nodes, call_ids):
    """Newest first, first fit."""
    seen, found = [], {}
    for node in nodes:
        if node.id in call_ids:
            seen.append(node)
        value = reward_value(node.span)
        if value is None:
            continue
        for candidate in reversed(seen):
            if candidate.span.end_time <= node.span.start_time and candidate.id not in found:
                found[candidate.id] = value
                break
    return found


@settings(max_examples=300, deadline=None)
@given(flat_traces())
def test_agree_with_the_literal_rules_and_never_reward_the_future(spans):
    root = build_tree(parse_spans(spans))
    call_ids = {item["span_id"] for item in spans if item["span_id"].startswith("c")}
    by_start = sorted(root.walk(), key=lambda node: node.span.start_time)
    assert match_rewards("first_occurrence", root, call_ids) == literally(by_start, call_ids)
    assert match_rewards("first_sibling", root, call_ids) == literally(root.children, call_ids)
