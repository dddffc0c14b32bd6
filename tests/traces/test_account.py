"""Mode compat accounts for every span, in the words of mode better."""

import json
from pathlib import Path

import pytest

from tests.traces.making import agent, call, reward, session, span
from trainer_export.traces.compat import PROXY, TRACER, convert_compat
from trainer_export.traces.parsing import parse_spans

VECTORS = Path(__file__).parent.parent / "vectors" / "triplets"
CASES = sorted(VECTORS.glob("*.json"))


def account(spans, adapter=TRACER, **options):
    outcome = convert_compat(adapter, parse_spans(spans), options)
    return {entry.span_id: (str(entry.use), entry.detail) for entry in outcome.report}


def test_calls_rewards_and_everything_else():
    spans = [
        session(),
        agent("a", "s", 1, 40, "solver"),
        call("c1", "a", 2, 3),
        call("c2", "a", 5, 6, attributes={"gen_ai.response.id": "chatcmpl-c1"}),
        span("t", "a", 7, 8, "tool"),
        span("o", "a", 9, 10, "chat m", gen_ai__operation__name="chat"),
        reward("r1", "a", 11, 1.0),
        reward("r2", "a", 12, 2.0),
    ]
    assert account(spans) == {
        "s": ("structure", ""),
        "a": ("agent", ""),
        "c1": ("call", ""),
        "c2": ("joined", ""),
        "t": ("structure", ""),
        "o": ("other_name", ""),
        "r1": ("reward", "c1"),
        "r2": ("reward_without_call", ""),
    }


def test_why_a_call_is_not_selected():
    judge = reward("r", "s", 1, 1.0, 30)
    spans = [
        session(),
        agent("a", "s", 1, 40, "other"),
        call("c1", "a", 2, 3),
        judge,
        call("c2", "r", 5, 6),
        call("c3", "s", 50, 60),
        call("c4", "c3", 51, 52, attributes={"gen_ai.response.id": 7}),
    ]
    told = account(spans, repair_hierarchy=False)
    assert (told["c2"][0], told["c4"][0]) == ("inside_a_reward", "inside_a_call")
    assert account(spans, agent_match="solver", repair_hierarchy=False)["c1"][0] == "agent_not_wanted"


def test_calls_without_ids_are_told_where_they_are_skipped():
    spans = [session(), call("c1", "s", 2, 3, attributes={"prompt_token_ids": []})]
    assert account(spans)["c1"][0] == "call"
    assert account(spans, _skip_empty_token_spans=True)["c1"][0] == "no_token_ids"


def test_a_cycle_is_outside_the_tree():
    spans = [session(), span("x", "y"), span("y", "x")]
    assert account(spans)["x"][0] == "outside_the_tree"


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_every_span_of_the_vectors_has_one_entry(case):
    spans = parse_spans(json.loads(case.read_text())["input_spans"])
    for adapter in (TRACER, PROXY):
        outcome = convert_compat(adapter, spans, {})
        ids = [entry.span_id for entry in outcome.report]
        assert sorted(ids) == sorted({span.span_id for span in spans})
        calls = [entry for entry in outcome.report if entry.use == "call"]
        assert len(calls) == len(outcome.triplets) or len(ids) < len(spans)
