"""Results as Anthropic messages, and back: what a client replays is what is stored."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.protocols.anthropic import ANTHROPIC
from sessions_app.protocols.anthropic.replying import content_blocks, stream_events
from sessions_app.turns.values import ChatRequest
from tests.protocols.incoming import incoming, result

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e6, 1e6) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
CALLS = st.builds(
    lambda number, name, arguments: {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)},
    },
    st.integers(0, 99),
    TEXTS,
    st.dictionaries(TEXTS, VALUES, max_size=3),
)


def request(**more: Any) -> ChatRequest:
    body = {"model": "m", "messages": [{"role": "user", "content": "q"}], **more}
    return ANTHROPIC.read(incoming(body))


@given(TEXTS, TEXTS, st.lists(CALLS, max_size=3))
def test_a_reply_comes_back_as_it_is_stored(content: str, reasoning: str, calls: list[Any]) -> None:
    stored: dict[str, Any] = {"role": "assistant", "content": content}
    if reasoning:
        stored["reasoning_content"] = reasoning
    if calls:
        stored["tool_calls"] = calls
    replayed = [{"role": "user", "content": "q"}, {"role": "assistant", "content": content_blocks(stored)}]
    assert ANTHROPIC.read(incoming({"messages": replayed})).messages[1] == stored


def test_a_reply_tells_every_digit_that_was_sampled() -> None:
    arguments = '{"x": 0.12345678901234567890, "n": 123456789012345678901, "e": 1e400}'
    call = {"id": "call_1", "type": "function", "function": {"name": "ls", "arguments": arguments}}
    turn = result({"role": "assistant", "content": "é", "tool_calls": [call]})
    assert arguments.encode() in ANTHROPIC.reply(turn, request())
    turn = result({"role": "assistant", "content": "\ud83d", "tool_calls": [call]})
    assert b'"x":0.1234567890123456' in ANTHROPIC.reply(turn, request())


@pytest.mark.parametrize("arguments", ["not json", "[1]", '{"a":', '{"a": NaN}'])
def test_malformed_arguments_travel_as_they_are(arguments: str) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "ls", "arguments": arguments}}
    stored = {"role": "assistant", "content": "", "tool_calls": [call]}
    [block] = content_blocks(stored)
    assert block["input"] == {"_raw_arguments": arguments}
    replayed = [{"role": "user", "content": "q"}, {"role": "assistant", "content": [block]}]
    assert ANTHROPIC.read(incoming({"messages": replayed})).messages[1] == stored


def test_an_empty_reply_has_one_empty_text() -> None:
    assert content_blocks({"role": "assistant", "content": None}) == [{"type": "text", "text": ""}]


@pytest.mark.parametrize(
    ("message", "finish", "matched", "reason"),
    [
        ({"content": "a"}, "stop", None, ("end_turn", None)),
        ({"content": "a"}, "length", None, ("max_tokens", None)),
        ({"content": "a"}, "stop", "X", ("stop_sequence", "X")),
        ({"content": "a"}, "stop", "Y", ("end_turn", None)),
        ({"content": "a"}, "stop", 151645, ("end_turn", None)),
        ({"content": "", "tool_calls": [{"id": "c", "function": {}}]}, "length", None, ("tool_use", None)),
    ],
)
def test_stop_reasons(message: dict[str, Any], finish: str, matched: Any, reason: tuple[str, Any]) -> None:
    turn = result({"role": "assistant", **message}, finish=finish, matched_stop=matched)
    reply = json.loads(ANTHROPIC.reply(turn, request(stop_sequences=["X"])))
    assert (reply["stop_reason"], reply["stop_sequence"]) == reason


def test_the_message_has_the_services_fields() -> None:
    reply = json.loads(ANTHROPIC.reply(result({"role": "assistant", "content": "hi"}), request()))
    assert reply == {
        "id": "msg_77",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "hi"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 2},
    }


def test_a_stream_spells_arguments_as_they_were_sampled() -> None:
    arguments = '{"days": 1.0,   "city":"Z\\u00fcrich"}'
    call = {"id": "call_1", "type": "function", "function": {"name": "ls", "arguments": arguments}}
    turn = result({"role": "assistant", "content": "", "tool_calls": [call]})
    events = [json.loads(event.split(b"data: ")[1]) for event in stream_events(turn, request())]
    assert [event["type"] for event in events] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert events[1]["content_block"] == {"type": "tool_use", "id": "toolu_1", "name": "ls", "input": {}}
    assert events[2]["delta"] == {"type": "input_json_delta", "partial_json": arguments}
    assert events[0]["message"]["usage"] == {"input_tokens": 9, "output_tokens": 0}
