"""Conversations in mode `better`: one and the same exchange, told by every dialect."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.traces.making import span, triplets
from tests.traces.test_bad_input import JSON

ARGUMENTS = '{"city": "Bern"}'
FUNCTION = {"name": "weather", "arguments": ARGUMENTS}
CALL = {"id": "c1", "type": "function", "function": FUNCTION}
SCHEMA = {"name": "weather", "description": "d", "parameters": {"type": "object"}}
TOOL = {"type": "function", "function": SCHEMA}
SENT = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "weather?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "content": "sunny", "tool_call_id": "c1"},
]
GOT = {"role": "assistant", "content": "It is sunny."}


def flat(prefix, values):
    """Nested values as attributes."""
    if isinstance(values, dict):
        return {k: v for key, value in values.items() for k, v in flat(f"{prefix}.{key}", value).items()}
    if isinstance(values, list):
        return flat(prefix, dict(enumerate(values)))
    return {} if values is None else {prefix: values}


def bare(message):
    calls = [{"id": "c1", **FUNCTION} for _ in message.get("tool_calls", ())]
    return {**message, **({"tool_calls": calls} if calls else {})}


def wrapped(message):
    calls = [{"tool_call": {"id": "c1", "function": FUNCTION}} for _ in message.get("tool_calls", ())]
    return {"message": {**message, **({"tool_calls": calls} if calls else {})}}


def parts(message):
    found = []
    if message["role"] == "tool":
        found.append({"type": "tool_call_response", "id": "c1", "response": message["content"]})
    elif message["content"]:
        found.append({"type": "text", "content": message["content"]})
    found += [{"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Bern"}}
              for _ in message.get("tool_calls", ())]  # fmt: skip
    return {"role": message["role"], "parts": found}


REQUEST = {"messages": SENT, "tools": [TOOL]}
REPLY = {"id": "r", "choices": [{"index": 0, "message": GOT, "finish_reason": "stop"}]}
DIALECTS = {
    "flat": {"gen_ai.request.type": "chat"}
    | flat("gen_ai.prompt", [bare(one) for one in SENT])
    | flat("gen_ai.completion", [{**GOT, "finish_reason": "stop"}])
    | flat("gen_ai.request.functions", [{**SCHEMA, "parameters": json.dumps(SCHEMA["parameters"])}]),
    "parts": {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps([parts(one) for one in SENT]),
        "gen_ai.output.messages": json.dumps([{**parts(GOT), "finish_reason": "stop"}]),
        "gen_ai.tool.definitions": json.dumps([{"type": "function", **SCHEMA}]),
    },
    "nested parts": {
        "gen_ai.operation.name": "chat",
        "gen_ai.system_instructions": [{"type": "text", "content": "be brief"}],
        "gen_ai.input.messages": [parts(one) for one in SENT[1:]],
        "gen_ai.output.messages": [parts(GOT)],
        "gen_ai.tool.definitions": [TOOL],
    },
    "openinference": {"openinference.span.kind": "LLM"}
    | flat("llm.input_messages", [wrapped(one) for one in SENT])
    | flat("llm.output_messages", [wrapped(GOT)])
    | flat("llm.tools", [{"tool": {"json_schema": json.dumps(TOOL)}}]),
    "whole bodies": {
        "openinference.span.kind": "LLM",
        "input.value": json.dumps(REQUEST),
        "output.value": json.dumps(REPLY),
    },
    "weave": {"gen_ai.operation.name": "chat", "gen_ai.tool.definitions": json.dumps([TOOL])}
    | flat("agentlightning.operation.input.messages", SENT)
    | flat("agentlightning.operation.output.choices", REPLY["choices"]),
    "litellm": {
        "gen_ai.operation.name": "acompletion",
        "gen_ai.input.messages": json.dumps(SENT),
        "gen_ai.output.messages": json.dumps([GOT]),
    }
    | flat("llm.request.functions", [SCHEMA]),
}


def chats(*spans):
    return triplets(list(spans), "TraceToMessages", mode="better")


def recorded(span_id="c", start=1.0, **attributes):
    return span(span_id, None, start, start + 1) | {"attributes": attributes}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_tells_the_same(dialect):
    (found,) = chats(recorded(**DIALECTS[dialect]))
    messages = [{**one, "content": one.get("content")} for one in found["messages"]]
    for one in messages:
        for call in one.get("tool_calls", ()):
            call["function"]["arguments"] = json.dumps(json.loads(call["function"]["arguments"]))
    assert messages == [*SENT, GOT]
    assert found["tools"] == [TOOL]


def test_a_call_that_two_instrumentations_saw_is_told_once_and_calls_in_order_of_time():
    told = {"gen_ai.response.id": "r"}
    found = chats(
        recorded("late", 9.0, **DIALECTS["flat"], **{"gen_ai.response.id": "other"}),
        recorded("one", 1.0, **DIALECTS["parts"], **told),
        recorded("two", 1.1, **DIALECTS["flat"], **told),
    )
    assert len(found) == 2


def test_tool_spans_below_a_call_are_its_tool_calls():
    attributes = {key: value for key, value in DIALECTS["flat"].items() if "completion" not in key}
    attributes |= {"gen_ai.completion.0.role": "assistant"}
    made = {
        "tool.name": "weather",
        "tool.parameters": ARGUMENTS,
        "tool.call.id": "c1",
        "tool.call.type": "function",
    }
    (found,) = chats(recorded(**attributes), span("t", "c", 1.5, 1.6) | {"attributes": made})
    assert found["messages"][-1] == {"role": "assistant", "content": None, "tool_calls": [CALL]}


def test_images_are_kept_as_the_api_spells_them():
    picture = {"type": "image_url", "image_url": {"url": "http://x/y.png"}}
    question = {"type": "text", "text": "what?"}
    forms = [
        {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": json.dumps([question, picture])},
        flat("llm.input_messages", [{"message": {"role": "user", "contents": [
            {"message_content": question},
            {"message_content": {"type": "image", "image": {"image": {"url": "http://x/y.png"}}}}]}}]),
        {"gen_ai.input.messages": [{"role": "user", "parts": [
            {"type": "text", "content": "what?"},
            {"type": "uri", "modality": "image", "uri": "http://x/y.png"}]}]},
    ]  # fmt: skip
    for form in forms:
        (found,) = chats(recorded(**{"gen_ai.operation.name": "chat"}, **form))
        assert found["messages"] == [{"role": "user", "content": [question, picture]}]


def test_failed_calls_and_calls_without_messages_are_no_conversations():
    assert chats(recorded(**DIALECTS["flat"], **{"error.type": "timeout"})) == []
    assert chats(recorded(**{"gen_ai.operation.name": "chat"})) == []


KEYS = st.sampled_from(
    ["gen_ai.prompt.0.content", "gen_ai.prompt.0.tool_calls.0.name", "gen_ai.input.messages", "input.value",
     "gen_ai.output.messages", "llm.input_messages.0.message.contents", "gen_ai.tool.definitions",
     "gen_ai.system_instructions", "llm.tools.0.tool.json_schema", "tool.call.id", "tool.name", "tool"]
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(KEYS, JSON | JSON.map(json.dumps), max_size=5))
def test_whatever_spans_hold_nothing_raises(attributes):
    found = chats(recorded(**{"gen_ai.operation.name": "chat"}, **attributes), span("t", "c", 1.0, 2.0))
    assert isinstance(found, list), found
