"""The official SDKs of OpenAI and Anthropic, unchanged, against the running server."""

import asyncio
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx
import openai
import pytest

from tests.fakes.engine import FakeEngine, Reply, Status
from tests.integration.servers import shared_server, toy_environment

ARGUMENTS = '{"days": 1.0,   "city":"Z\\u00fcrich 1"}'
CALL = {"id": "call_A1", "type": "function", "function": {"name": "get_weather", "arguments": ARGUMENTS}}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "number"}}}
CHAT_TOOLS: list[Any] = [
    {"type": "function", "function": {"name": "get_weather", "description": "w", "parameters": SCHEMA}}
]
MESSAGES_TOOLS: list[Any] = [{"name": "get_weather", "description": "w", "input_schema": SCHEMA}]
RESPONSES_TOOLS: list[Any] = [
    {"type": "function", "name": "get_weather", "description": "w", "parameters": SCHEMA, "strict": False}
]
TOO_LONG = Status(400, {}, b'{"object":"error","message":"The input (99 tokens) is longer than the model\'s '
                           b'context length (64 tokens)."}')  # fmt: skip


def thinking_call() -> Reply:
    """Reasoning, text and a call."""
    message = {
        "role": "assistant",
        "content": "I will call\n\na tool. ",
        "reasoning_content": "Let me think.\n\nI need the tool.  ",
        "tool_calls": [CALL],
    }
    return Reply(ids=[104, 105, 106], message=message, finish="tool_calls")


def said(text: str) -> Reply:
    return Reply(ids=[104, 105], text=text)


@pytest.fixture(scope="class")
def served(django_db_setup: None, django_db_blocker: Any) -> Iterator[tuple[str, FakeEngine]]:
    with FakeEngine() as engine, shared_server(django_db_blocker, toy_environment(engine)) as url:
        yield url, engine


@pytest.fixture
def session(served: tuple[str, FakeEngine]) -> str:
    """The URL of a session whose arguments may come back respelled."""
    response = httpx.post(f"{served[0]}/sessions", json={"harness": "anthropic"})
    return f"{served[0]}/sessions/{response.json()['session_id']}"


@pytest.fixture
def engine(served: tuple[str, FakeEngine]) -> FakeEngine:
    return served[1]


def leaves(session: str) -> int:
    """How many branches a session has."""
    return len(httpx.get(session).json()["metadata"]["tree"]["leaves"])


class TestOpenAIChat:
    @pytest.fixture
    def client(self, session: str) -> Iterator[openai.OpenAI]:
        with openai.OpenAI(base_url=f"{session}/v1", api_key="none", max_retries=0) as client:
            yield client

    def test_a_conversation_with_tools_is_one_chain(
        self, client: openai.OpenAI, engine: FakeEngine, session: str
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

    def test_a_stream_adds_up_to_the_reply(self, client: openai.OpenAI, engine: FakeEngine) -> None:
        engine.script(thinking_call())
        with client.chat.completions.stream(
            model="m", messages=[{"role": "user", "content": "weather?"}], tools=CHAT_TOOLS
        ) as stream:
            final = stream.get_final_completion()
        assert final.choices[0].finish_reason == "tool_calls"
        assert final.choices[0].message.tool_calls[0].function.arguments == ARGUMENTS
        assert final.choices[0].message.content == "I will call\n\na tool. "

    def test_the_asynchronous_client_works_alike(self, session: str, engine: FakeEngine) -> None:
        async def talk() -> str:
            async with openai.AsyncOpenAI(base_url=f"{session}/v1", api_key="none") as client:
                stream = await client.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": "hi"}], stream=True
                )
                return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

        engine.script(said("hello there"))
        assert asyncio.run(talk()) == "hello there"

    def test_an_engine_error_passes_through_on_the_reference_path(
        self, client: openai.OpenAI, engine: FakeEngine
    ) -> None:
        engine.script(TOO_LONG)
        with pytest.raises(openai.BadRequestError, match="longer than the model's context length"):
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])

    def test_an_unknown_session_is_not_found(self, served: tuple[str, FakeEngine]) -> None:
        client = openai.OpenAI(base_url=f"{served[0]}/sessions/{'0' * 32}/v1", api_key="none")
        with pytest.raises(openai.NotFoundError):
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])

    def test_the_models_are_listed(self, client: openai.OpenAI) -> None:
        assert "default" in [model.id for model in client.models.list()]
        assert client.models.retrieve("default").owned_by == "tito"
        with pytest.raises(openai.NotFoundError, match="'no/such' does not exist"):
            client.models.retrieve("no/such")


class TestAnthropicMessages:
    @pytest.fixture
    def client(self, session: str) -> Iterator[anthropic.Anthropic]:
        with anthropic.Anthropic(base_url=session, api_key="none", max_retries=0) as client:
            yield client

    def test_a_conversation_with_tools_is_one_chain(
        self, client: anthropic.Anthropic, engine: FakeEngine, session: str
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

    def test_a_stream_adds_up_to_the_reply(self, client: anthropic.Anthropic, engine: FakeEngine) -> None:
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

    def test_the_asynchronous_client_works_alike(self, session: str, engine: FakeEngine) -> None:
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

    def test_tokens_are_counted(self, client: anthropic.Anthropic) -> None:
        short = client.messages.count_tokens(model="m", messages=[{"role": "user", "content": "hi"}])
        long = client.messages.count_tokens(model="m", messages=[{"role": "user", "content": "hi" * 50}])
        assert 0 < short.input_tokens < long.input_tokens

    def test_stop_sequences_reach_the_engine_and_are_named(
        self, client: anthropic.Anthropic, engine: FakeEngine
    ) -> None:
        engine.script(Reply(ids=[104], text="ok", meta={"matched_stop": "END"}))
        reply = client.messages.create(
            model="m", max_tokens=9, stop_sequences=["END"], messages=[{"role": "user", "content": "hi"}]
        )
        assert engine.bodies[-1]["stop"] == ["END"]
        assert (reply.stop_reason, reply.stop_sequence) == ("stop_sequence", "END")

    def test_a_context_overflow_is_told_in_the_standard_text(
        self, client: anthropic.Anthropic, engine: FakeEngine
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
        self, client: anthropic.Anthropic, engine: FakeEngine, answer: Status, kind: type[Exception]
    ) -> None:
        engine.script(answer)
        with pytest.raises(kind) as raised:
            client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}])
        assert raised.value.body["type"] == "error"

    def test_errors_before_a_session_is_known_have_the_shape(self, served: tuple[str, FakeEngine]) -> None:
        for base in (f"{served[0]}/sessions/nonsense", served[0]):
            client = anthropic.Anthropic(base_url=base, api_key="none", max_retries=0)
            with pytest.raises((anthropic.NotFoundError, anthropic.AuthenticationError)) as raised:
                client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}])
            assert raised.value.body["type"] == "error"

    def test_guards_before_any_view_have_the_shape_too(self, served: tuple[str, FakeEngine]) -> None:
        for headers in ({"content-type": "text/plain"}, {"host": "evil.example"}, {"origin": "http://evil"}):
            response = httpx.post(f"{served[0]}/v1/messages", content=b"{}", headers=headers)
            assert response.status_code in (400, 403, 415)
            assert response.json()["type"] == "error"
            assert response.headers["X-Tito-Error-Code"]

    def test_images_are_refused_clearly(self, client: anthropic.Anthropic, engine: FakeEngine) -> None:
        source = {"type": "base64", "media_type": "image/png", "data": "aGk="}
        content: list[Any] = [{"type": "image", "source": source}]
        before = len(engine.bodies)
        with pytest.raises(anthropic.BadRequestError, match="'image' blocks cannot be shown") as raised:
            client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": content}])
        assert raised.value.response.headers["X-Tito-Error-Code"] == "unsupported_content"
        assert len(engine.bodies) == before


class TestOpenAIResponses:
    @pytest.fixture
    def client(self, session: str) -> Iterator[openai.OpenAI]:
        with openai.OpenAI(base_url=f"{session}/v1", api_key="none", max_retries=0) as client:
            yield client

    def test_replayed_items_are_one_chain(
        self, client: openai.OpenAI, engine: FakeEngine, session: str
    ) -> None:
        engine.script(thinking_call(), said("sunny"))
        items: list[Any] = [{"role": "user", "content": "weather?"}]
        first = client.responses.create(model="m", instructions="Help.", input=items, tools=RESPONSES_TOOLS)
        assert [item.type for item in first.output] == ["reasoning", "message", "function_call"]
        assert first.output_text == "I will call\n\na tool. "
        items += [
            *first.output,
            {"type": "function_call_output", "call_id": "call_A1", "output": "sunny"},
        ]
        second = client.responses.create(model="m", instructions="Help.", input=items, tools=RESPONSES_TOOLS)
        assert second.output_text == "sunny"
        assert leaves(session) == 1

    @pytest.mark.parametrize("instructions", [None, "Help."])
    def test_a_previous_response_is_continued(
        self, client: openai.OpenAI, engine: FakeEngine, session: str, instructions: str | None
    ) -> None:
        engine.script(thinking_call(), said("sunny"))
        first = client.responses.create(
            model="m", instructions="Help.", input="weather?", tools=RESPONSES_TOOLS
        )
        output: list[Any] = [{"type": "function_call_output", "call_id": "call_A1", "output": "sunny"}]
        more = {} if instructions is None else {"instructions": instructions}
        second = client.responses.with_raw_response.create(
            model="m", previous_response_id=first.id, input=output, tools=RESPONSES_TOOLS, **more
        )
        assert second.headers["X-Tito-Attach"] == "append"
        assert second.headers["X-Tito-Parent"] == "0"
        assert second.parse().previous_response_id == first.id
        assert leaves(session) == 1

    def test_a_response_of_another_session_does_not_exist(
        self, client: openai.OpenAI, engine: FakeEngine
    ) -> None:
        for unknown in ("resp_" + "0" * 40, "resp_nonsense"):
            with pytest.raises(openai.BadRequestError, match="not found"):
                client.responses.create(model="m", previous_response_id=unknown, input="x")

    def test_a_stream_adds_up_to_the_response(self, client: openai.OpenAI, engine: FakeEngine) -> None:
        engine.script(thinking_call())
        with client.responses.stream(model="m", input="weather?", tools=RESPONSES_TOOLS) as stream:
            kinds = [event.type for event in stream]
            final = stream.get_final_response()
        assert kinds[0] == "response.created"
        assert kinds[-1] == "response.completed"
        assert "response.output_text.delta" in kinds
        assert "response.function_call_arguments.done" in kinds
        assert final.output_text == "I will call\n\na tool. "
        assert final.output[-1].arguments == ARGUMENTS

    def test_a_cut_reply_is_incomplete(self, client: openai.OpenAI, engine: FakeEngine) -> None:
        engine.script(Reply(ids=[104], text="h", finish="length"))
        response = client.responses.create(model="m", input="x", max_output_tokens=1)
        assert response.status == "incomplete"
        assert response.incomplete_details is not None
        assert response.incomplete_details.reason == "max_output_tokens"
        assert engine.bodies[-1]["max_completion_tokens"] == 1

    def test_sealed_reasoning_comes_back(
        self, client: openai.OpenAI, engine: FakeEngine, session: str
    ) -> None:
        engine.script(thinking_call(), said("sunny"))
        first = client.responses.create(
            model="m", input="weather?", include=["reasoning.encrypted_content"], store=False
        )
        reasoning = {
            "type": "reasoning",
            "summary": [],
            "encrypted_content": first.output[0].encrypted_content,
        }
        items: list[Any] = [{"role": "user", "content": "weather?"}, reasoning, *first.output[1:]]
        items.append({"type": "function_call_output", "call_id": "call_A1", "output": "sunny"})
        client.responses.create(model="m", input=items)
        assert leaves(session) == 1

    def test_a_response_is_read_again_as_it_was_answered(
        self, client: openai.OpenAI, engine: FakeEngine, served: tuple[str, FakeEngine], session: str
    ) -> None:
        engine.script(thinking_call(), said("sunny"))
        first = client.responses.create(
            model="m", instructions="Help.", input="weather?", tools=RESPONSES_TOOLS, temperature=0.5
        )
        output: list[Any] = [{"type": "function_call_output", "call_id": "call_A1", "output": "sunny"}]
        second = client.responses.create(model="m", previous_response_id=first.id, input=output, store=False)
        assert client.responses.retrieve(first.id).to_dict() == first.to_dict()
        again = client.responses.retrieve(second.id)
        assert (again.output_text, again.previous_response_id, again.store) == ("sunny", first.id, False)
        by_key = openai.OpenAI(base_url=f"{served[0]}/v1", api_key=session.rpartition("/")[2])
        assert by_key.responses.retrieve(first.id).to_dict() == first.to_dict()

    def test_what_a_response_answered_is_listed(self, client: openai.OpenAI, engine: FakeEngine) -> None:
        engine.script(thinking_call(), said("sunny"))
        first = client.responses.create(model="m", instructions="Help.", input="weather?")
        output: list[Any] = [{"type": "function_call_output", "call_id": "call_A1", "output": "sunny"}]
        second = client.responses.create(model="m", previous_response_id=first.id, input=output)
        items = list(client.responses.input_items.list(second.id, order="asc", limit=2))
        kinds = [item.type for item in items]
        assert kinds == ["message", "reasoning", "message", "function_call", "function_call_output"]
        assert len({item.id for item in items}) == 5
        newest = client.responses.input_items.list(second.id, limit=1)
        assert newest.data[0].output == "sunny"
        with pytest.raises(openai.BadRequestError, match="after must be"):
            client.responses.input_items.list(second.id, after="nonsense")

    def test_what_is_not_there_or_not_possible_is_told_in_its_shape(
        self, client: openai.OpenAI, engine: FakeEngine
    ) -> None:
        engine.script(said("sunny"))
        response = client.responses.create(model="m", input="x")
        calls: list[Any] = [
            (client.responses.retrieve, "resp_" + "0" * 40, 404),
            (client.responses.retrieve, "resp_nonsense", 404),
            (client.responses.input_items.list, response.id[:-8] + "000000ff", 404),
            (client.responses.delete, response.id, 405),
            (client.responses.cancel, response.id, 400),
        ]
        for call, name, status in calls:
            with pytest.raises(openai.APIStatusError) as raised:
                call(name)
            assert raised.value.status_code == status
            assert raised.value.response.json()["error"]["code"] == raised.value.code
        assert client.responses.retrieve(response.id).output_text == "sunny"

    def test_a_turn_of_another_protocol_can_be_read(
        self, client: openai.OpenAI, engine: FakeEngine, session: str
    ) -> None:
        engine.script(said("hello"))
        messages = [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
        body = {"messages": messages, "max_tokens": 9}
        assert httpx.post(f"{session}/v1/messages", json=body).status_code == 200
        name = f"resp_{session.rpartition('/')[2]}00000000"
        assert client.responses.retrieve(name).output_text == "hello"
        assert client.responses.input_items.list(name).data[0].content[0].text == "hi"

    def test_chains_of_responses_grow_and_branch(
        self, client: openai.OpenAI, engine: FakeEngine, session: str
    ) -> None:
        engine.script(thinking_call(), said("sunny"), said("bye"), said("other"))
        first = client.responses.create(
            model="m", instructions="Help.", input="weather?", tools=RESPONSES_TOOLS
        )
        output: list[Any] = [{"type": "function_call_output", "call_id": "call_A1", "output": "sunny"}]
        attached = []
        previous = first.id
        for given in (output, "thanks"):
            turn = client.responses.with_raw_response.create(
                model="m", previous_response_id=previous, input=given, tools=RESPONSES_TOOLS, store=False
            )
            attached.append((turn.headers["X-Tito-Attach"], turn.headers["X-Tito-Parent"]))
            previous = turn.parse().id
        assert attached == [("append", "0"), ("append", "1")]
        again = client.responses.with_raw_response.create(
            model="m", previous_response_id=first.id, input="never mind", tools=RESPONSES_TOOLS
        )
        assert (again.headers["X-Tito-Attach"], again.headers["X-Tito-Parent"]) == ("fork", "0")
        assert leaves(session) == 2
        fed = [body["input_ids"] for body in engine.bodies[-4:]]
        assert fed[3][: len(fed[0]) + 3] == fed[1][: len(fed[0]) + 3] == [*fed[0], 104, 105, 106]

    def test_other_instructions_are_another_head(
        self, client: openai.OpenAI, engine: FakeEngine, session: str
    ) -> None:
        engine.script(said("a"), said("b"))
        first = client.responses.create(model="m", instructions="Help.", input="q")
        second = client.responses.with_raw_response.create(
            model="m", instructions="Hinder.", previous_response_id=first.id, input="r"
        )
        assert second.headers["X-Tito-Cause"] == "system_changed"
        sent = engine.bodies[-1]["messages"]
        assert [message["content"] for message in sent] == ["Hinder.", "q", "a", "r"]
