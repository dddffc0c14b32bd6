"""Anthropic's SDK, unchanged, against the running server."""

import asyncio
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx
import pytest

from tests.fakes.engine import FakeEngine, Reply, Status
from tests.integration.sdks.conversations import MESSAGES_TOOLS, TOO_LONG, leaves, said, thinking_call


@pytest.fixture
def client(session: str) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=session, api_key="none", max_retries=0) as client:
        yield client


def test_a_conversation_with_tools_is_one_chain(
    client: anthropic.Anthropic, engine: FakeEngine, session: str
) -> None:
    engine.script(thinking_call(), said("sunny"))
    messages: list[Any] = [{"role": "user", "content": "weather?"}]
    first = client.messages.create(
        model="m", max_tokens=99, system="You help.", messages=messages, tools=MESSAGES_TOOLS
    )
    assert first.stop_reason == "tool_use"
    assert [block.type for block in first.content] == ["thinking", "text", "tool_use"]
    thinking, _, call = first.content
    assert thinking.type == "thinking"
    assert thinking.signature
    assert call.type == "tool_use"
    assert call.input == {"days": 1.0, "city": "Zürich 1"}
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "sunny", "is_error": False}
    messages += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
    second = client.messages.create(
        model="m", max_tokens=99, system="You help.", messages=messages, tools=MESSAGES_TOOLS
    )
    assert second.stop_reason == "end_turn"
    assert leaves(session) == 1
    assert engine.bodies[-1]["messages"][-1] == {
        "role": "tool",
        "tool_call_id": "call_A1",
        "content": "sunny",
    }


def test_a_stream_adds_up_to_the_reply(client: anthropic.Anthropic, engine: FakeEngine) -> None:
    engine.script(thinking_call())
    with client.messages.stream(
        model="m", max_tokens=9, messages=[{"role": "user", "content": "weather?"}], tools=MESSAGES_TOOLS
    ) as stream:
        texts = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert texts == "I will call\n\na tool. "
    assert [block.type for block in final.content] == ["thinking", "text", "tool_use"]
    assert final.content[2].input == {"days": 1.0, "city": "Zürich 1"}
    assert (final.stop_reason, final.usage.output_tokens) == ("tool_use", 3)


def test_the_asynchronous_client_works_alike(session: str, engine: FakeEngine) -> None:
    async def talk() -> str:
        async with (
            anthropic.AsyncAnthropic(base_url=session, api_key="none") as client,
            client.messages.stream(
                model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}]
            ) as stream,
        ):
            return await stream.get_final_text()

    engine.script(said("hello there"))
    assert asyncio.run(talk()) == "hello there"


def test_tokens_are_counted(client: anthropic.Anthropic) -> None:
    short = client.messages.count_tokens(model="m", messages=[{"role": "user", "content": "hi"}])
    long = client.messages.count_tokens(model="m", messages=[{"role": "user", "content": "hi" * 50}])
    assert 0 < short.input_tokens < long.input_tokens


def test_stop_sequences_reach_the_engine_and_are_named(
    client: anthropic.Anthropic, engine: FakeEngine
) -> None:
    engine.script(Reply(ids=[104], text="ok", meta={"matched_stop": "END"}))
    reply = client.messages.create(
        model="m", max_tokens=9, stop_sequences=["END"], messages=[{"role": "user", "content": "hi"}]
    )
    assert engine.bodies[-1]["stop"] == ["END"]
    assert (reply.stop_reason, reply.stop_sequence) == ("stop_sequence", "END")


def test_a_context_overflow_is_told_in_the_standard_text(
    client: anthropic.Anthropic, engine: FakeEngine
) -> None:
    engine.script(TOO_LONG)
    with pytest.raises(anthropic.BadRequestError) as raised:
        client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}])
    error = raised.value.body["error"]
    assert error["type"] == "invalid_request_error"
    assert error["message"].startswith("This model's maximum context length is 64 tokens. However, your")
    assert raised.value.response.headers["X-Tito-Error-Code"] == "context_length_exceeded"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Status(429, {}, b'{"message": "slow"}'), anthropic.RateLimitError),
        (Status(500, {}, b"oops"), anthropic.InternalServerError),
    ],
)
def test_other_engine_errors_keep_their_status(
    client: anthropic.Anthropic, engine: FakeEngine, answer: Status, kind: type[Exception]
) -> None:
    engine.script(answer)
    with pytest.raises(kind) as raised:
        client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}])
    assert raised.value.body["type"] == "error"


def test_errors_before_a_session_is_known_have_the_shape(served: tuple[str, FakeEngine]) -> None:
    for base in (f"{served[0]}/sessions/nonsense", served[0]):
        client = anthropic.Anthropic(base_url=base, api_key="none", max_retries=0)
        with pytest.raises((anthropic.NotFoundError, anthropic.AuthenticationError)) as raised:
            client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}])
        assert raised.value.body["type"] == "error"


def test_guards_before_any_view_have_the_shape_too(served: tuple[str, FakeEngine]) -> None:
    for headers in ({"content-type": "text/plain"}, {"host": "evil.example"}, {"origin": "http://evil"}):
        response = httpx.post(f"{served[0]}/v1/messages", content=b"{}", headers=headers)
        assert response.status_code in (400, 403, 415)
        assert response.json()["type"] == "error"
        assert response.headers["X-Tito-Error-Code"]


def test_images_are_refused_clearly(client: anthropic.Anthropic, engine: FakeEngine) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    content: list[Any] = [{"type": "image", "source": source}]
    before = len(engine.bodies)
    with pytest.raises(anthropic.BadRequestError, match="'image' blocks cannot be shown") as raised:
        client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": content}])
    assert raised.value.response.headers["X-Tito-Error-Code"] == "unsupported_content"
    assert len(engine.bodies) == before
