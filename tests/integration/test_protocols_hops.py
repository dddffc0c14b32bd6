"""One conversation, told by a client that changes its protocol from turn to turn."""

from collections.abc import Callable
from itertools import permutations
from typing import Any

import httpx
import pytest

from tests.fakes.engine import FakeEngine, Reply

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
DESCRIBED = {"name": "ls", "description": "List."}
CALL = {"id": "call_1", "type": "function", "function": {"name": "ls", "arguments": '{"path": "/"}'}}
OTHER = {"id": "call_2", "type": "function", "function": {"name": "ls", "arguments": '{"path": "/é"}'}}
FIRST = {"role": "assistant", "content": "see", "reasoning_content": "hm", "tool_calls": [CALL, OTHER]}


def as_chat(turn: int) -> tuple[str, dict[str, Any]]:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Help."},
        {"role": "user", "content": "q1"},
        FIRST,
        {"role": "tool", "tool_call_id": "call_1", "content": "f1"},
        {"role": "tool", "tool_call_id": "call_2", "content": "f2"},
        {"role": "assistant", "content": "mid"},
        {"role": "user", "content": "q2"},
    ]
    tools = [{"type": "function", "function": {**DESCRIBED, "parameters": SCHEMA}}]
    return "chat/completions", {"messages": messages[: (2, 5, 7)[turn]], "tools": tools}


def as_messages(turn: int) -> tuple[str, dict[str, Any]]:
    call = {"type": "tool_use", "id": "toolu_1", "name": "ls", "input": {"path": "/"}}
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    other = {"type": "tool_use", "id": "toolu_2", "name": "ls", "input": {"path": "/é"}}
    results = [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "f1"}]},
        {"type": "tool_result", "tool_use_id": "toolu_2", "content": "f2", "is_error": True},
    ]
    messages = [
        {"role": "user", "content": "q1"},
        {"role": "assistant", "content": [thought, {"type": "text", "text": "see"}, call, other]},
        {"role": "user", "content": results},
        {"role": "assistant", "content": "mid"},
        {"role": "user", "content": [{"type": "text", "text": "q2"}]},
    ]
    tools = [{**DESCRIBED, "input_schema": SCHEMA}]
    return "messages", {
        "system": [{"type": "text", "text": "Help."}],
        "messages": messages[: (1, 3, 5)[turn]],
        "tools": tools,
        "max_tokens": 9,
    }


def as_responses(turn: int) -> tuple[str, dict[str, Any]]:
    items = [
        {"role": "user", "content": "q1"},
        {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "see"}]},
        {"type": "function_call", "call_id": "call_1", "name": "ls", "arguments": '{"path": "/"}'},
        {"type": "function_call", "call_id": "call_2", "name": "ls", "arguments": '{"path": "/é"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "f1"},
        {"type": "function_call_output", "call_id": "call_2", "output": "f2"},
        {"role": "assistant", "content": "mid"},
        {"role": "user", "content": [{"type": "input_text", "text": "q2"}]},
    ]
    tools = [{"type": "function", **DESCRIBED, "parameters": SCHEMA, "strict": False}]
    return "responses", {"instructions": "Help.", "input": items[: (1, 7, 9)[turn]], "tools": tools}


FORMS: list[Callable[[int], tuple[str, dict[str, Any]]]] = [as_chat, as_messages, as_responses]


@pytest.mark.parametrize("policy", ["tree", "linear", "rollback"])
@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_hopping_conversation_is_one_chain(
    served: tuple[httpx.Client, FakeEngine], order: tuple[int, ...], policy: str
) -> None:
    client, engine = served
    session = client.post("/sessions", json={"history_policy": policy}).json()["session_id"]
    engine.script(
        Reply(ids=[104, 105], message=FIRST, finish="tool_calls"),
        Reply(ids=[106], text="mid"),
        Reply(ids=[107], text="end"),
    )
    attached = []
    for turn, form in enumerate(order):
        path, body = FORMS[form](turn)
        response = client.post(f"/sessions/{session}/v1/{path}", json=body)
        assert response.status_code == 200, response.text
        attached.append(response.headers["X-Tito-Attach"])
    assert attached == ["root", "append", "append"]
    first, second, third = (body["input_ids"] for body in engine.bodies[-3:])
    assert second[: len(first) + 2] == [*first, 104, 105]
    assert third[: len(second) + 1] == [*second, 106]
    sent = engine.bodies[-1]["messages"]
    assert [message["role"] for message in sent] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "user",
    ]
