"""Mode `better` on traces of every kind: order, completeness, causality."""

import json
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.traces.making import agent, call, reward, session, span
from tests.traces.test_bad_input import JSON, SPAN
from tests.traces.test_better import outcome
from trainer_export.traces.better.report import Use


@st.composite
def ordinary_traces(draw):
    spans = [session()]
    for index in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(["call", "reward", "agent", "work"]))
        parent = draw(st.sampled_from([item["span_id"] for item in spans] + ["gone"]))
        start = float(draw(st.integers(0, 30)))
        end = start + draw(st.integers(0, 9))
        if kind == "call":
            made = call(f"c{index}", parent, start, end)
        elif kind == "reward":
            made = reward(f"r{index}", parent, start, float(draw(st.integers(0, 3))))
        elif kind == "agent":
            made = agent(f"a{index}", parent, start, end, draw(st.sampled_from(["x", "y"])))
        else:
            made = span(f"w{index}", parent, start, end)
        spans.append(made | {"sequence_id": index + 1})
    return spans


@settings(max_examples=200, deadline=None)
@given(ordinary_traces(), st.randoms(use_true_random=False))
def test_order_of_arrival_changes_nothing(spans, random):
    shuffled = list(spans)
    random.shuffle(shuffled)
    assert outcome(shuffled) == outcome(spans)
    assert outcome([*shuffled, *spans])["triplets"] == outcome(spans)["triplets"]


@settings(max_examples=200, deadline=None)
@given(ordinary_traces())
def test_every_span_is_accounted_for_and_no_reward_comes_before_its_call_ended(spans):
    result = outcome(spans)
    assert Counter(entry["span_id"] for entry in result["report"]) == Counter(
        item["span_id"] for item in spans
    )
    by_id = {item["span_id"]: item for item in spans}
    for entry in result["report"]:
        if entry["as"] == "reward" and "matched_by_order" in entry["remarks"]:
            assert by_id[entry["detail"]]["end_time"] <= by_id[entry["span_id"]]["start_time"]
    in_triplets = {span_id for item in result["triplets"] for span_id in item["metadata"]["span_ids"]}
    assert in_triplets == {
        entry["span_id"] for entry in result["report"] if entry["as"] in ("call", "joined")
    }


@settings(max_examples=200, deadline=None)
@given(st.lists(SPAN | JSON, max_size=6))
def test_nothing_is_fatal(spans):
    result = outcome(spans)
    json.dumps(result)
    assert len(result["report"]) == len(spans)
    assert {entry["as"] for entry in result["report"]} <= {str(use) for use in Use}


def test_absurdly_deep_keys_are_passed_over():
    deep = {"gen_ai.request." + ".".join("a" * 5000): 1, "gen_ai.request.model": "m"}
    made = outcome([session(), call("c", "s", 1, 2, attributes=deep)])["triplets"][0]
    assert made["metadata"]["request"] == {"model": "m"}


def test_span_ids_that_two_traces_share_are_two_spans():
    def trace(number, name):
        at = 10.0 * number
        spans = [agent("a", None, at, at + 9, name), call("c", "a", at + 1, at + 2)]
        spans.append(reward("r", "a", at + 3, number))
        spans[1]["attributes"]["gen_ai.response.id"] = f"chatcmpl-{number}"
        return [one | {"trace_id": f"{number}" * 32} for one in spans]

    result = outcome([*trace(2, "critic"), *trace(1, "solver")])
    told = [
        (one["metadata"]["response_id"], one["metadata"]["agent_name"], one["reward"])
        for one in result["triplets"]
    ]
    assert sorted(told) == [("chatcmpl-1", "solver", 1.0), ("chatcmpl-2", "critic", 2.0)]
    assert sorted(entry["span_id"] for entry in result["report"]) == sorted(
        ["a", "c", "r", *(f"{name}:{'2' * 32}" for name in "acr")]
    )
