"""Requests with pieces exchanged for odd ones: each is read and answered, or refused in so many words."""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from sessions_app.errors import TitoError
from sessions_app.protocols.anthropic import ANTHROPIC
from sessions_app.protocols.base import WireProtocol
from sessions_app.protocols.openai_chat import CHAT
from sessions_app.protocols.responses import RESPONSES
from tests.protocols.incoming import incoming, result

TOOL = {"name": "f", "description": "d"}
MESSAGES: dict[str, Any] = {
    "model": "m",
    "max_tokens": 9,
    "system": [{"type": "text", "text": "s", "cache_control": {"type": "e"}}],
    "tools": [{**TOOL, "input_schema": {"type": "object"}}, {"type": "web_search_1", "name": "w"}],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    "stop_sequences": ["x"],
    "output_config": {"format": {"type": "json_schema", "schema": {}}},
    "stream": False,
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "q", "cache_control": {"type": "e"}}]},
        {"role": "system", "content": "n"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "t", "signature": "s"},
                {"type": "redacted_thinking", "data": "d"},
                {"type": "text", "text": "a"},
                {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1.50}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [{"type": "text", "text": "r"}],
                    "is_error": False,
                }
            ],
        },
    ],
}
ITEMS: dict[str, Any] = {
    "model": "m",
    "instructions": "i",
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "q"}]},
        {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "s"}],
            "content": [{"type": "reasoning_text", "text": "t"}],
            "encrypted_content": "tito1.aGk=",
        },
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "o"}]},
    ],
    "tools": [{"type": "function", **TOOL, "parameters": {}, "strict": True}, {"type": "web_search"}],
    "tool_choice": {"type": "function", "name": "f"},
    "text": {"format": {"type": "json_schema", "name": "n", "schema": {}}},
    "reasoning": {"effort": "low"},
    "include": ["reasoning.encrypted_content"],
    "metadata": {},
}
CHATS: dict[str, Any] = {
    "model": "m",
    "messages": [
        {"role": "developer", "content": "d"},
        {"role": "user", "content": [{"type": "text", "text": "q"}]},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "r",
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "x"},
    ],
    "tools": [{"type": "function", "function": {**TOOL, "parameters": {}}}],
    "n": 1,
    "metadata": {"session_id": "s"},
    "chat_template_kwargs": {},
}
ODD: list[Any] = [
    None, True, 0, -1, 1.5, "", "x", "\ud800", [], [None], ["x"], {}, {"type": "text"}, {"type": None},
    [[]], [{}], 10**30, float("nan"),
]  # fmt: skip
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1e400}'}}
REPLIES = [
    {"role": "assistant", "content": "a", "reasoning_content": "r", "tool_calls": [CALL]},
    {"role": "assistant", "content": None},
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place inside a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in inner:
        yield (*path, name)
        yield from places(item, (*path, name))


def mutated(body: Any, chance: random.Random) -> Any:
    """A body with one to three pieces exchanged or left out."""
    changed = copy.deepcopy(body)
    for _ in range(chance.choice([1, 1, 2, 3])):
        *path, last = chance.choice(list(places(changed)))
        holder = changed
        for name in path:
            holder = holder[name]
        if chance.random() < 0.8:
            holder[last] = copy.deepcopy(chance.choice(ODD))
        else:
            del holder[last]
    return changed


@pytest.mark.parametrize("policy", ["tree", "linear"])
@pytest.mark.parametrize(
    ("protocol", "body"),
    [
        pytest.param(ANTHROPIC, MESSAGES, id="messages"),
        pytest.param(RESPONSES, ITEMS, id="responses"),
        pytest.param(CHAT, CHATS, id="chat"),
    ],
)
def test_a_request_is_read_and_answered_or_refused(protocol: WireProtocol, body: Any, policy: str) -> None:
    chance, taken = random.Random(policy), 0
    for _ in range(500):
        sent = mutated(body, chance)
        protocol.session_name(sent)
        try:
            request = protocol.read(incoming(json.dumps(sent), policy=policy))
        except TitoError:
            continue
        taken += 1
        assert len(request.spelled) == len(request.messages)
        for index in range(len(request.messages)):
            json.loads(request.texts.text(index))
            json.loads(request.sidecars.get(index, "null"))
        for message in REPLIES:
            json.loads(protocol.reply(result(message), request))
            assert b"".join(protocol.events(result(message), request)).endswith(b"\n\n")
    assert 50 < taken < 500
