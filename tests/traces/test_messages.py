"""Spans -> conversations for fine-tuning."""

import pytest

from tests.traces.making import span, triplets


def conversations(*spans):
    return triplets(list(spans), "TraceToMessages")


def recorded(span_id="c", parent=None, **attributes):
    return span(span_id, parent, 1.0, 2.0, **attributes)


def test_prompt_then_completion():
    found = conversations(
        recorded(
            gen_ai__prompt__0__role="system",
            gen_ai__prompt__0__content="be brief",
            gen_ai__prompt__1__role="tool",
            gen_ai__prompt__1__content="12",
            gen_ai__prompt__1__tool_call_id="call_1",
            gen_ai__completion__0__role="assistant",
            gen_ai__completion__0__content="hi",
        )
    )
    assert found == [
        {
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "tool", "content": "12", "tool_call_id": "call_1"},
                {"role": "assistant", "content": "hi"},
            ],
            "tools": None,
        }
    ]


def test_any_of_the_four_parts_makes_a_conversation():
    assert conversations(recorded(), recorded(gen_ai__usage__total=1)) == []
    assert conversations(recorded(gen_ai__response__model="m")) == [{"messages": [], "tools": None}]


def test_recorded_tool_calls_of_the_history():
    call = {f"gen_ai.prompt.0.tool_calls.0.{key}": key for key in ("id", "name", "arguments")}
    source = recorded(gen_ai__prompt__0__role="assistant", gen_ai__prompt__0__content="dropped")
    source["attributes"] |= call
    assert conversations(source)[0]["messages"] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "id", "type": "function", "function": {"name": "name", "arguments": "arguments"}}
            ],
        }
    ]


def test_tool_spans_below_a_call_become_its_tool_calls():
    tool = {"tool.name": "f", "tool.parameters": "{}", "tool.call.id": "call_1", "tool.call.type": "function"}
    found = conversations(
        recorded("t", "c") | {"attributes": tool},
        recorded(gen_ai__completion__0__role="assistant"),
    )
    assert found[0]["messages"] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ],
        }
    ]


def test_a_tool_call_without_a_type_is_a_function():
    tool = {"tool.name": "f", "tool.parameters": "{}", "tool.call.id": "call_1"}
    found = conversations(
        recorded("t", "c") | {"attributes": tool},
        recorded(gen_ai__completion__0__role="assistant"),
    )
    assert found[0]["messages"][0]["tool_calls"][0]["type"] == "function"


def test_tool_definitions():
    found = conversations(
        recorded(
            gen_ai__request__functions__0__name="f",
            gen_ai__request__functions__0__parameters='{"type": "object"}',
        )
    )
    definition = {"name": "f", "description": "", "parameters": {"type": "object"}}
    assert found == [{"messages": [], "tools": [{"type": "function", "function": definition}]}]


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"gen_ai.prompt.name": "t"}, "Extracted prompt from trace is not a list: {'name': 't'}"),
        ({"gen_ai.completion.x": 1}, "Extracted completion from trace is not a list: {'x': 1}"),
        ({"gen_ai.request.0.a": 1}, "Extracted request from trace is not a dict: [{'a': 1}]"),
        ({"gen_ai.response.0.a": 1}, "Extracted response from trace is not a dict: [{'a': 1}]"),
    ],
)
def test_wrong_shapes(attributes, message):
    assert conversations(recorded() | {"attributes": attributes})["error"] == {
        "type": "ValueError",
        "message": message,
    }


def test_wrong_shape_of_a_tool_call():
    answer = conversations(
        recorded(gen_ai__request__model="m"), recorded("t", "c") | {"attributes": {"tool.0.a": 1}}
    )
    assert answer["error"]["message"] == "Extracted tool call from trace is not a dict: [{'a': 1}]"


def test_positions_close_gaps_and_drop_what_stands_beside_them():
    found = conversations(
        recorded(gen_ai__prompt__3__role="user", gen_ai__prompt__1__role="system", gen_ai__prompt__extra="x")
    )
    assert [message["role"] for message in found[0]["messages"]] == ["system", "user"]
