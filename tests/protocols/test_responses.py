"""Responses: items as canonical messages, results as items, and back."""

import json
from typing import Any

import pytest

from sessions_app.errors import BadRequest, InvalidMessages, InvalidTools, UnsupportedContent
from sessions_app.protocols.responses import RESPONSES
from sessions_app.protocols.responses.identity import node_of, response_id
from sessions_app.protocols.responses.replying import response_of
from sessions_app.turns.values import ChatRequest
from tests.protocols.incoming import SESSION, incoming, result

CALL = {"id": "call_1", "type": "function", "function": {"name": "ls", "arguments": '{"a": 1}'}}
STORED = {"role": "assistant", "content": "hi", "reasoning_content": "hm", "tool_calls": [CALL]}
QUESTION = {"role": "user", "content": "q"}


def read(given: Any, **more: Any) -> ChatRequest:
    return RESPONSES.read(incoming({"input": given, **more}))


def test_a_text_is_a_users_message() -> None:
    assert read("q", instructions="i").messages == [{"role": "system", "content": "i"}, QUESTION]


def test_items_of_one_reply_are_one_message() -> None:
    response = response_of(result(STORED), json.loads(read("q").arrival.body))
    assert [item["type"] for item in response["output"]] == ["reasoning", "message", "function_call"]
    assert read([QUESTION, *response["output"]]).messages == [QUESTION, STORED]


def test_two_replies_in_a_row_stay_two() -> None:
    one = response_of(result({**STORED, "tool_calls": []}), json.loads(read("q").arrival.body))["output"]
    assert len(read([QUESTION, *one, *one]).messages) == 3


def test_calls_and_their_outputs() -> None:
    items = [
        QUESTION,
        {"type": "function_call", "call_id": "call_1", "name": "ls", "arguments": '{"a": 1}'},
        {"type": "function_call", "call_id": "call_2", "name": "ls", "arguments": ""},
        {"type": "function_call_output", "call_id": "call_1", "output": "r"},
        {
            "type": "function_call_output",
            "call_id": "call_2",
            "output": [{"type": "input_text", "text": "s"}],
        },
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "d"}]},
    ]
    second = {"id": "call_2", "type": "function", "function": {"name": "ls", "arguments": ""}}
    assert read(items).messages[1:] == [
        {"role": "assistant", "content": "", "tool_calls": [CALL, second]},
        {"role": "tool", "tool_call_id": "call_1", "content": "r"},
        {"role": "tool", "tool_call_id": "call_2", "content": "s"},
        {"role": "system", "content": "d"},
    ]


def test_sealed_reasoning_is_read_again() -> None:
    request = read("q", include=["reasoning.encrypted_content"])
    [reasoning, *_] = response_of(result(STORED), json.loads(request.arrival.body))["output"]
    bare = {"type": "reasoning", "summary": [], "encrypted_content": reasoning["encrypted_content"]}
    assert read([QUESTION, bare]).messages[1]["reasoning_content"] == "hm"
    foreign = {"type": "reasoning", "summary": [{"text": "s"}], "encrypted_content": "gAAAA"}
    assert read([QUESTION, foreign]).messages[1]["reasoning_content"] == "s"


def previous(*messages: dict[str, Any], **more: Any) -> ChatRequest:
    texts = [json.dumps(message) for message in messages]
    return RESPONSES.read(incoming({"input": "more", "previous_response_id": "r", **more}, previous=texts))


SYSTEM = {"role": "system", "content": "i"}
MORE = {"role": "user", "content": "more"}


def test_a_previous_response_stands_for_its_messages_as_stored() -> None:
    request = previous(SYSTEM, QUESTION, STORED)
    assert request.messages == [SYSTEM, QUESTION, STORED, MORE]
    assert request.texts.text(2) == json.dumps(STORED)
    assert request.texts.text(3) == '{"role":"user","content":"more"}'
    assert [request.sidecars.get(index) for index in range(3)] == [None] * 3


def test_instructions_given_again_continue_and_others_replace() -> None:
    assert previous(SYSTEM, QUESTION, instructions="i").messages == [SYSTEM, QUESTION, MORE]
    other = previous(SYSTEM, QUESTION, instructions="j")
    assert other.messages == [{"role": "system", "content": "j"}, QUESTION, MORE]
    assert other.texts.text(0) == '{"role":"system","content":"j"}'
    assert previous(QUESTION, instructions="i").messages == [SYSTEM, QUESTION, MORE]


def test_ids_name_the_node_of_a_session() -> None:
    assert node_of(response_id(result(STORED, node=7))) == (SESSION, 7)
    assert node_of(response_id(result(STORED, node=None))) is None
    for odd in (None, 5, "resp_1", "resp_" + "g" * 40):
        assert node_of(odd) is None


def test_tools_and_sampling_are_said_in_chats_words() -> None:
    tools = [{"type": "function", "name": "ls", "parameters": {}, "strict": True}, {"type": "web_search"}]
    request = read(
        "q",
        tools=tools,
        tool_choice={"type": "function", "name": "ls"},
        max_output_tokens=5,
        text={"format": {"type": "json_schema", "name": "n", "schema": {}}},
        reasoning={"effort": "low"},
    )
    empty = {"type": "object", "properties": {}}
    function = {"name": "ls", "description": "", "parameters": empty, "strict": True}
    assert request.tools == [{"type": "function", "function": function}]
    assert request.body["tool_choice"] == {"type": "function", "function": {"name": "ls"}}
    assert request.body["max_completion_tokens"] == 5
    assert request.body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "n", "schema": {}},
    }
    assert request.body["reasoning_effort"] == "low"
    assert request.own_params is not None
    assert request.own_params["tools"] == [{"strict": True}, {"type": "web_search"}]


def test_what_was_asked_is_echoed() -> None:
    asked = read("q", temperature=0.5, previous_response_id="resp_x", metadata={"a": "b"})
    response = response_of(result(STORED), json.loads(asked.arrival.body))
    assert (response["temperature"], response["previous_response_id"]) == (0.5, "resp_x")
    assert (response["metadata"], response["tool_choice"]) == ({"a": "b"}, "auto")


def test_events_are_numbered_and_end_with_the_response() -> None:
    events = list(RESPONSES.events(result(STORED, finish="length"), read("q")))
    parsed = [json.loads(event.split(b"data: ")[1]) for event in events]
    assert [event["sequence_number"] for event in parsed] == list(range(len(parsed)))
    assert parsed[0]["type"] == "response.created"
    assert parsed[-1]["type"] == "response.incomplete"
    added = [event["item"]["type"] for event in parsed if event["type"] == "response.output_item.added"]
    assert added == ["reasoning", "message", "function_call"]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ([], BadRequest),
        ({"input": 5}, InvalidMessages),
        ({"input": ["x"]}, InvalidMessages),
        ({"input": [{"role": "odd", "content": ""}]}, InvalidMessages),
        ({"input": [{"type": "function_call", "name": "x"}]}, InvalidMessages),
        ({"input": [{"type": "item_reference", "id": "x"}]}, UnsupportedContent),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, UnsupportedContent),
        ({"input": "x", "tools": "y"}, InvalidTools),
        ({"input": "x", "conversation": "c"}, BadRequest),
        ({"input": "x", "background": True}, BadRequest),
        ({"input": "x", "instructions": 5}, BadRequest),
        ({"input": "x", "include": 5}, BadRequest),
        ({"input": "x", "text": 5}, BadRequest),
        ({"input": "x", "tools": [{"type": "function", "name": "f"}], "tool_choice": 5}, InvalidTools),
        ({"input": [{"type": "reasoning", "summary": 5}]}, InvalidMessages),
        ({"input": [{"type": "reasoning", "content": "text"}]}, InvalidMessages),
        ({"input": [{"type": "reasoning", "summary": [{"text": 5}]}]}, InvalidMessages),
    ],
)
def test_what_is_no_request_is_refused(body: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        RESPONSES.read(incoming(body))
