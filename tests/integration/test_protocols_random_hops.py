"""Random conversations whose clients change their protocol from turn to turn and read what they are told."""

import random
from typing import Any

import httpx
import pytest

from sessions_app.protocols.calls import arguments_object
from tests.fakes.engine import FakeEngine, Reply

TEXTS = [
    "", "a", " ", "ok. ", "\n\nx\n", "é😀\u202e", "<think>x</think>", "<system-reminder>r</system-reminder>",
    "a\u0000b", "Calling tools:\n[1]",
]  # fmt: skip
ARGUMENTS = [
    '{"a":1}', '{ "b" : 1.50, "a":"\\u00e9"}', "", "{}", "not json", "[1]", '{"a":{"b":[1,{"c":null}]}}',
    '"a"',
    '{"n":12345678901234567890.5}', '{"n":9007199254740993}', '{"a":1,"a":2}', '{"x":"\\ud83d\\ude00"}',
]  # fmt: skip
SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}
NAMED = {"name": "f", "description": "d"}
Messages = list[dict[str, Any]]


def some_reply(rng: random.Random, turn: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": rng.choice(TEXTS)}
    if rng.random() < 0.5:
        message["reasoning_content"] = rng.choice([text for text in TEXTS if text])
    calls = [
        {
            "id": f"call_{turn}_{at}",
            "type": "function",
            "function": {"name": "f", "arguments": rng.choice(ARGUMENTS)},
        }
        for at in range(rng.choice([0, 0, 1, 1, 2, 3]))
    ]
    return {**message, "tool_calls": calls} if calls else message


def as_chat(told: Messages, rng: random.Random) -> tuple[str, dict[str, Any]]:
    tool = {"type": "function", "function": {**NAMED, "parameters": SCHEMA}}
    return "chat/completions", {"messages": told, "tools": [tool]}


def in_parts(rng: random.Random, said: str, kind: str) -> Any:
    return rng.choice([said, [{"type": kind, "text": said}]])


def as_messages(told: Messages, rng: random.Random) -> tuple[str, dict[str, Any]]:
    messages: Messages = []
    for message in told:
        if message["role"] == "assistant":
            messages.append({"role": "assistant", "content": blocks(message)})
        elif message["role"] == "user":
            messages.append({"role": "user", "content": in_parts(rng, message["content"], "text")})
        else:
            name = message["tool_call_id"].replace("call_", "toolu_")
            content = in_parts(rng, message["content"], "text")
            result = {"type": "tool_result", "tool_use_id": name, "content": content}
            messages.append({"role": "user", "content": [result]})
    return "messages", {"messages": messages, "max_tokens": 9, "tools": [{**NAMED, "input_schema": SCHEMA}]}


def blocks(message: dict[str, Any]) -> Messages:
    said: Messages = []
    if message.get("reasoning_content"):
        said.append({"type": "thinking", "thinking": message["reasoning_content"], "signature": "s"})
    if message["content"]:
        said.append({"type": "text", "text": message["content"]})
    for call in message.get("tool_calls", ()):
        read = arguments_object(call["function"]["arguments"])
        name = call["id"].replace("call_", "toolu_")
        said.append({"type": "tool_use", "id": name, "name": "f", "input": read})
    return said or [{"type": "text", "text": ""}]


def as_responses(told: Messages, rng: random.Random) -> tuple[str, dict[str, Any]]:
    given: Messages = []
    for message in told:
        if message["role"] == "assistant":
            given += items(message)
        elif message["role"] == "user":
            given.append({"role": "user", "content": in_parts(rng, message["content"], "input_text")})
        else:
            name, output = message["tool_call_id"], message["content"]
            given.append({"type": "function_call_output", "call_id": name, "output": output})
    return "responses", {"input": given, "tools": [{"type": "function", **NAMED, "parameters": SCHEMA}]}


def items(message: dict[str, Any]) -> Messages:
    said: Messages = []
    calls = message.get("tool_calls", ())
    if message.get("reasoning_content"):
        thought = [{"type": "reasoning_text", "text": message["reasoning_content"]}]
        said.append({"type": "reasoning", "summary": [], "content": thought})
    if message["content"] or not (said or calls):
        part = {"type": "output_text", "text": message["content"]}
        said.append({"type": "message", "role": "assistant", "content": [part]})
    said += [{"type": "function_call", "call_id": call["id"], **call["function"]} for call in calls]
    return said


def goes_on(told: Messages, rng: random.Random) -> Messages:
    """What a client adds: results of all calls, and what the user says."""
    calls = told[-1].get("tool_calls", ()) if told else ()
    added = [{"role": "tool", "tool_call_id": each["id"], "content": rng.choice(TEXTS)} for each in calls]
    if not calls or rng.random() < 0.3:
        added.append({"role": "user", "content": rng.choice(TEXTS[1:])})
    return [*told, *added]


@pytest.mark.parametrize("policy", ["tree", "linear", "rollback"])
@pytest.mark.parametrize("seed", range(8))
def test_a_client_that_sends_back_what_it_read_stays_on_one_chain(
    served: tuple[httpx.Client, FakeEngine], seed: int, policy: str
) -> None:
    client, engine = served
    rng = random.Random(seed)
    options = {"harness": "anthropic", "history_policy": policy}
    session = client.post("/sessions", json=options).json()["session_id"]
    told: Messages = []
    before: list[int] = []
    for turn in range(5):
        told = goes_on(told, rng)
        path, body = rng.choice([as_chat, as_messages, as_responses])(told, rng)
        message = some_reply(rng, turn)
        engine.script(Reply(ids=[104 + turn, 105], message=message))
        stream = {"stream": rng.random() < 0.3}
        response = client.post(f"/sessions/{session}/v1/{path}", json=body | stream)
        assert response.status_code == 200, response.text
        assert response.headers["X-Tito-Attach"] == ("append" if turn else "root"), (turn, path)
        fed = engine.bodies[-1]["input_ids"]
        assert fed[: len(before)] == before
        before, told = [*fed, 104 + turn, 105], [*told, message]
