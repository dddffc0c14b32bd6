"""Odd bodies in each protocol: taken or refused, in its shape, never half; and streams that add up."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import httpx
import openai
import pytest

from tests.fakes.engine import FakeEngine, Reply
from tests.integration.servers import shared_server, toy_environment

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}


def user(content: Any) -> list[Any]:
    return [{"role": "user", "content": content}]


def replied(*blocks: Any) -> list[Any]:
    return [*user("q"), {"role": "assistant", "content": list(blocks)}, *user("x")]


REFUSED: dict[str, list[tuple[Any, str]]] = {
    "messages": [
        ({"messages": None}, "invalid_messages"),
        ({"messages": user(None)}, "invalid_messages"),
        ({"messages": user([None])}, "invalid_messages"),
        ({"messages": user([{"type": "text", "text": None}])}, "invalid_messages"),
        ({"messages": user([IMAGE])}, "unsupported_content"),
        (
            {"messages": user([{"type": "tool_result", "tool_use_id": "t", "content": [IMAGE]}])},
            "unsupported_content",
        ),
        ({"messages": user([{"type": "search_result", "content": []}])}, "unsupported_content"),
        ({"messages": user("q"), "system": [IMAGE]}, "unsupported_content"),
        ({"messages": [*user("q"), {"role": "system", "content": [IMAGE]}]}, "unsupported_content"),
        (
            {"messages": [*user("q"), {"role": "system", "content": [{"type": "text", "text": None}]}]},
            "invalid_messages",
        ),
        ({"messages": user("q"), "system": {"a": 1}}, "invalid_messages"),
        ({"messages": user("q"), "stop_sequences": [1]}, "invalid_sampling"),
        ({"messages": user("q"), "max_tokens": 1.5}, "invalid_sampling"),
        ({"messages": replied({"type": "tool_use", "id": None, "name": "f"})}, "invalid_messages"),
        ({"messages": replied({"type": "server_tool_use", "id": "s"})}, "unsupported_content"),
        ({"messages": user("q"), "n": 2}, "n_not_supported"),
    ],
    "responses": [
        ({}, "invalid_messages"),
        ({"input": [None]}, "invalid_messages"),
        ({"input": user([{"type": "input_image", "image_url": "data:"}])}, "unsupported_content"),
        ({"input": user([{"type": "input_audio"}])}, "unsupported_content"),
        ({"input": [{"type": "custom_tool_call", "call_id": "c"}]}, "unsupported_content"),
        ({"input": [{"type": ["a"]}]}, "unsupported_content"),
        ({"input": [{"type": "function_call", "call_id": "c", "name": "n", "arguments": {}}]},
         "invalid_messages"),
        ({"input": [{"type": "reasoning", "summary": 5}]}, "invalid_messages"),
        ({"input": "q", "include": 5}, "invalid_argument"),
        ({"input": "q", "previous_response_id": 5}, "invalid_argument"),
        ({"input": "q", "prompt": {"id": "p"}}, "invalid_argument"),
        ({"input": "q", "max_output_tokens": "x"}, "invalid_sampling"),
    ],
    "chat/completions": [
        ({"messages": user([{"type": "image_url", "image_url": {"url": "data:"}}])}, "unsupported_content"),
        ({"messages": user([{"type": "input_audio", "input_audio": {}}])}, "unsupported_content"),
        ({"messages": user("q"), "tools": [{"type": "custom", "custom": {}}]}, "invalid_tools"),
        ({"messages": user("q"), "n": 2}, "n_not_supported"),
        ({"messages": user("q"), "chat_template_kwargs": 5}, "invalid_template_kwargs"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"id": 1}]}, *user("x")]}, "template_error"),
    ],
}  # fmt: skip
TAKEN: dict[str, list[Any]] = {
    "messages": [
        {"messages": user("q"), "system": None, "tools": None, "metadata": None, "stop_sequences": None},
        {"messages": user(""), "system": [], "tool_choice": None},
        {"messages": replied({"type": "tool_use", "id": "1", "name": "f", "input": None})},
        {"messages": replied()},
        {"messages": user([{"type": "tool_result", "tool_use_id": "t", "content": None, "is_error": True}])},
        {
            "messages": replied(
                {"type": "thinking", "thinking": "a", "signature": "b"},
                {"type": "text", "text": "x"},
                {"type": "thinking", "thinking": "c", "signature": "d"},
                {"type": "tool_use", "id": "1", "name": "f", "input": {}},
            )
        },
    ],
    "responses": [
        {"input": "", "tools": None, "store": None, "instructions": None},
        {"input": [{"type": "function_call_output", "call_id": "c", "output": None}]},
        {"input": [{"type": "reasoning", "summary": None, "content": None}, *user("q")]},
        {"input": "q", "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}},
    ],
    "chat/completions": [
        {"messages": user(None), "stop": None, "n": None, "stream_options": {"include_usage": True}},
        {"messages": user([{"type": "text", "text": "a"}]), "logprobs": True, "top_logprobs": 2},
    ],
}


@pytest.fixture(scope="module")
def served(django_db_setup: None, django_db_blocker: Any) -> Iterator[tuple[str, FakeEngine]]:
    with FakeEngine() as engine, shared_server(django_db_blocker, toy_environment(engine)) as url:
        yield url, engine


def new_session(url: str, policy: str = "linear") -> str:
    response = httpx.post(f"{url}/sessions", json={"history_policy": policy})
    return f"{url}/sessions/{response.json()['session_id']}"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", REFUSED)
def test_what_is_refused_is_refused_whole_and_in_shape(
    served: tuple[str, FakeEngine], path: str, stream: bool
) -> None:
    url, engine = served
    session, before = new_session(url), len(engine.bodies)
    for body, code in REFUSED[path]:
        response = httpx.post(f"{session}/v1/{path}", json={**body, "stream": stream})
        assert (response.status_code, response.headers["X-Tito-Error-Code"]) == (400, code), body
        told = response.json()
        assert told["error"]["type"] == "invalid_request_error"
        assert told.get("type") == ("error" if path == "messages" else None)
    assert len(engine.bodies) == before
    assert httpx.get(session).json()["records"] == []


@pytest.mark.parametrize(
    ("path", "body"), [(path, body) for path, bodies in TAKEN.items() for body in bodies]
)
def test_what_says_nothing_is_nothing(served: tuple[str, FakeEngine], path: str, body: Any) -> None:
    for policy in ("tree", "linear"):
        response = httpx.post(f"{new_session(served[0], policy)}/v1/{path}", json=body)
        assert response.status_code == 200, response.text


def call(number: int, arguments: str) -> dict[str, Any]:
    return {"id": f"call_{number}", "type": "function", "function": {"name": "f", "arguments": arguments}}


REPLIES: dict[str, dict[str, Any]] = {
    "parallel": {
        "content": "é  ",
        "reasoning_content": "r\n",
        "tool_calls": [call(1, '{"a": 1}'), call(2, '{"b": [1, 2.50]}')],
    },
    "empty": {"content": ""},
    "malformed": {"content": "x", "tool_calls": [call(1, '{"a": ')]},
    "without arguments": {"content": "", "tool_calls": [call(1, "")]},
    "text": {"content": "a😀"},
}
CHAT_TOOLS: list[Any] = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
MESSAGES_TOOLS: list[Any] = [{"name": "f", "input_schema": {"type": "object"}}]
RESPONSES_TOOLS: list[Any] = [
    {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False}
]
_NAMES = {"id", "created", "created_at", "parsed", "parsed_arguments", "index", "meta_info", "matched_stop"}


def told(value: Any) -> Any:
    """A reply without what differs from turn to turn, and without what a client adds."""
    if isinstance(value, dict):
        return {name: told(item) for name, item in value.items() if name not in _NAMES and item is not None}
    return [told(item) for item in value] if isinstance(value, list) else value


def messages_of(session: str) -> tuple[Any, Any, Any]:
    options: Any = {"model": "m", "max_tokens": 9, "messages": user("q"), "tools": MESSAGES_TOOLS}

    async def later() -> Any:
        async with (
            anthropic.AsyncAnthropic(base_url=session, api_key="none") as client,
            client.messages.stream(**options) as stream,
        ):
            return await stream.get_final_message()

    with anthropic.Anthropic(base_url=session, api_key="none") as client:
        whole = client.messages.create(**options)
        with client.messages.stream(**options) as stream:
            return whole, stream.get_final_message(), asyncio.run(later())


def chats_of(session: str) -> tuple[Any, Any, Any]:
    options: Any = {"model": "m", "messages": user("q"), "tools": CHAT_TOOLS}

    async def later() -> Any:
        async with (
            openai.AsyncOpenAI(base_url=f"{session}/v1", api_key="none") as client,
            client.chat.completions.stream(**options) as stream,
        ):
            return await stream.get_final_completion()

    with openai.OpenAI(base_url=f"{session}/v1", api_key="none") as client:
        whole = client.chat.completions.create(**options)
        with client.chat.completions.stream(**options) as stream:
            return whole, stream.get_final_completion(), asyncio.run(later())


def responses_of(session: str) -> tuple[Any, Any, Any]:
    options: Any = {"model": "m", "input": "q", "tools": RESPONSES_TOOLS}

    async def later() -> Any:
        async with (
            openai.AsyncOpenAI(base_url=f"{session}/v1", api_key="none") as client,
            client.responses.stream(**options) as stream,
        ):
            return await stream.get_final_response()

    with openai.OpenAI(base_url=f"{session}/v1", api_key="none") as client:
        whole = client.responses.create(**options)
        with client.responses.stream(**options) as stream:
            return whole, stream.get_final_response(), asyncio.run(later())


@pytest.mark.parametrize("name", REPLIES)
@pytest.mark.parametrize("replies_of", [messages_of, chats_of, responses_of])
def test_streams_add_up_to_the_reply_in_the_official_clients(
    served: tuple[str, FakeEngine], replies_of: Callable[[str], tuple[Any, Any, Any]], name: str
) -> None:
    url, engine = served
    finish = "tool_calls" if "tool_calls" in REPLIES[name] else "stop"
    for _ in range(3):
        engine.script(Reply(ids=[104, 105], message={"role": "assistant", **REPLIES[name]}, finish=finish))
    whole, streamed, later = (
        told(json.loads(reply.model_dump_json(warnings=False))) for reply in replies_of(new_session(url))
    )
    assert streamed == {**whole, "object": streamed["object"]} if "object" in whole else streamed == whole
    assert later == streamed
