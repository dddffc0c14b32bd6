"""OpenAI's SDK over Chat Completions, unchanged, against the running server."""

import asyncio
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.fakes.engine import FakeEngine
from tests.integration.sdks.conversations import ARGUMENTS, CHAT_TOOLS, TOO_LONG, leaves, said, thinking_call


@pytest.fixture
def client(session: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{session}/v1", api_key="none", max_retries=0) as client:
        yield client


def test_a_conversation_with_tools_is_one_chain(
    client: openai.OpenAI, engine: FakeEngine, session: str
) -> None:
    engine.script(thinking_call(), said("sunny"))
    messages: list[Any] = [{"role": "user", "content": "weather?"}]
    first = client.chat.completions.create(model="m", messages=messages, tools=CHAT_TOOLS)
    message = first.choices[0].message
    assert message.tool_calls is not None
    assert message.tool_calls[0].function.arguments == ARGUMENTS
    messages += [message, {"role": "tool", "tool_call_id": "call_A1", "content": "sunny"}]
    second = client.chat.completions.create(model="m", messages=messages, tools=CHAT_TOOLS)
    assert second.choices[0].message.content == "sunny"
    assert leaves(session) == 1


def test_a_stream_adds_up_to_the_reply(client: openai.OpenAI, engine: FakeEngine) -> None:
    engine.script(thinking_call())
    with client.chat.completions.stream(
        model="m", messages=[{"role": "user", "content": "weather?"}], tools=CHAT_TOOLS
    ) as stream:
        final = stream.get_final_completion()
    assert final.choices[0].finish_reason == "tool_calls"
    assert final.choices[0].message.tool_calls[0].function.arguments == ARGUMENTS
    assert final.choices[0].message.content == "I will call\n\na tool. "


def test_the_asynchronous_client_works_alike(session: str, engine: FakeEngine) -> None:
    async def talk() -> str:
        async with openai.AsyncOpenAI(base_url=f"{session}/v1", api_key="none") as client:
            stream = await client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "hi"}], stream=True
            )
            return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    engine.script(said("hello there"))
    assert asyncio.run(talk()) == "hello there"


def test_an_engine_error_passes_through_on_the_reference_path(
    client: openai.OpenAI, engine: FakeEngine
) -> None:
    engine.script(TOO_LONG)
    with pytest.raises(openai.BadRequestError, match="longer than the model's context length"):
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])


def test_an_unknown_session_is_not_found(served: tuple[str, FakeEngine]) -> None:
    client = openai.OpenAI(base_url=f"{served[0]}/sessions/{'0' * 32}/v1", api_key="none")
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])


def test_the_models_are_listed(client: openai.OpenAI) -> None:
    assert "default" in [model.id for model in client.models.list()]
    assert client.models.retrieve("default").owned_by == "tito"
    with pytest.raises(openai.NotFoundError, match="'no/such' does not exist"):
        client.models.retrieve("no/such")
