"""Nothing crashes: what cannot be converted is an error with a type and a text."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.traces.making import REWARD, call, session, span, triplets
from trainer_export.traces.adapters import ADAPTERS
from trainer_export.traces.answers import answer, answer_request, encoded
from trainer_export.traces.parsing import parse_spans

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    [
        "agentlightning.reward.0.name",
        "agentlightning.reward.0.value",
        "agentlightning.reward",
        "agentops.task.output",
        "reward",
        "agent.name",
        "gen_ai.response.id",
        "gen_ai.prompt.0.content",
        "gen_ai.prompt.0",
        "gen_ai.completion.0.role",
        "gen_ai.request.functions.0.name",
        "logprobs.content",
        "prompt_token_ids",
        "llm.hosted_vllm.prompt_token_ids",
        "tool.name",
    ]
)
SPAN = st.fixed_dictionaries(
    {
        "span_id": st.sampled_from(["a", "b", "c", ""]),
        "parent_id": st.sampled_from([None, "a", "b", "c", "", "gone"]),
        "name": st.sampled_from(["openai.chat.completion", REWARD, "raw_gen_ai_request", "x"]),
        "start_time": st.none() | st.floats() | st.integers(),
        "end_time": st.none() | st.floats() | st.integers(),
        "sequence_id": st.integers(-2, 2),
        "attributes": st.dictionaries(KEYS, JSON, max_size=4),
    }
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(ADAPTERS)), st.lists(SPAN, max_size=5))
def test_any_spans(adapter, spans):
    json.dumps(answer(adapter, {}, spans))


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(ADAPTERS)), JSON, JSON)
def test_any_json(adapter, options, source):
    json.dumps(answer(adapter, options, source))


@settings(max_examples=100, deadline=None)
@given(JSON)
def test_any_request(request):
    assert set(answer_request(request)["error"]) == {"type", "message"}


@pytest.mark.parametrize("value", [None, {"a": 1}, [1, "a"], [None], [[1]]])
def test_attributes_of_wrong_types(value):
    assert triplets([session(), span("a", "s", x=value)])["error"]["type"] == "ValidationError"


def test_unknown_option_and_adapter():
    assert triplets([session()], no_such_option=1)["error"]["type"] == "TypeError"
    assert answer("Nothing", {}, [])["error"]["message"].startswith("Unknown adapter: Nothing.")


def test_spans_that_end_before_they_start():
    assert len(triplets([session(), call("c", "s", 9, 1)])) == 1


def test_whole_numbers_are_nanoseconds_and_zero_is_unknown():
    spans = [span("a") | {"start_time": 1_760_000_000_000_000_000, "end_time": 0}, span("b", end=5)]
    read = parse_spans(spans)
    assert [(one.start_time, one.end_time) for one in read] == [(1_760_000_000.0, None), (0.0, 5.0)]


@pytest.mark.parametrize("time", [10**400, -(10**400), "noon", [1]])
def test_times_that_no_clock_tells_are_malformed(time):
    assert triplets([span("a") | {"start_time": time}])["error"]["type"] == "ValidationError"


def test_endless_parent_chains():
    assert triplets([span("a", "b"), span("b", "a")])["error"]["type"] == "ValueError"
    assert triplets([span("a"), span("b", "a"), span("a", "b")])["error"]["type"] == "RecursionError"


@pytest.mark.parametrize("depth", range(900, 1000, 5))
def test_attributes_nested_to_the_limit_are_answered_either_way(depth):
    deep = {"gen_ai.request." + ".".join("a" * depth): 1}
    assert json.loads(encoded(triplets([session(), call("c", "s", 1, 2, attributes=deep)])))


def test_deeply_nested_attributes():
    deep = {"gen_ai.request." + ".".join("a" * 5000): 1}
    source = call("c", "s", 1, 2, attributes=deep)
    assert triplets([session(), source])["error"]["type"] == "RecursionError"
