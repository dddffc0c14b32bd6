"""OpenAI's SDK over the Responses API, unchanged, against the running server."""

from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from tests.fakes.engine import FakeEngine, Reply
from tests.integration.sdks.conversations import (
    ARGUMENTS,
    RESPONSES_TOOLS,
    SCHEMA,
    leaves,
    said,
    thinking_call,
)


@pytest.fixture
def client(session: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{session}/v1", api_key="none", max_retries=0) as client:
        yield client


def test_replayed_items_are_one_chain(client: openai.OpenAI, engine: FakeEngine, session: str) -> None:
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
    client: openai.OpenAI, engine: FakeEngine, session: str, instructions: str | None
) -> None:
    engine.script(thinking_call(), said("sunny"))
    first = client.responses.create(model="m", instructions="Help.", input="weather?", tools=RESPONSES_TOOLS)
    output: list[Any] = [{"type": "function_call_output", "call_id": "call_A1", "output": "sunny"}]
    more = {} if instructions is None else {"instructions": instructions}
    second = client.responses.with_raw_response.create(
        model="m", previous_response_id=first.id, input=output, tools=RESPONSES_TOOLS, **more
    )
    assert second.headers["X-Tito-Attach"] == "append"
    assert second.headers["X-Tito-Parent"] == "0"
    assert second.parse().previous_response_id == first.id
    assert leaves(session) == 1


def test_a_response_of_another_session_does_not_exist(client: openai.OpenAI, engine: FakeEngine) -> None:
    for unknown in ("resp_" + "0" * 40, "resp_nonsense"):
        with pytest.raises(openai.BadRequestError, match="not found"):
            client.responses.create(model="m", previous_response_id=unknown, input="x")


def test_a_stream_adds_up_to_the_response(client: openai.OpenAI, engine: FakeEngine) -> None:
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


def test_a_cut_reply_is_incomplete(client: openai.OpenAI, engine: FakeEngine) -> None:
    engine.script(Reply(ids=[104], text="h", finish="length"))
    response = client.responses.create(model="m", input="x", max_output_tokens=1)
    assert response.status == "incomplete"
    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == "max_output_tokens"
    assert engine.bodies[-1]["max_completion_tokens"] == 1


def test_sealed_reasoning_comes_back(client: openai.OpenAI, engine: FakeEngine, session: str) -> None:
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
    client: openai.OpenAI, engine: FakeEngine, served: tuple[str, FakeEngine], session: str
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


def test_what_a_response_answered_is_listed(client: openai.OpenAI, engine: FakeEngine) -> None:
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
    client: openai.OpenAI, engine: FakeEngine
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
    client: openai.OpenAI, engine: FakeEngine, session: str
) -> None:
    engine.script(said("hello"))
    messages = [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
    body = {"messages": messages, "max_tokens": 9}
    assert httpx.post(f"{session}/v1/messages", json=body).status_code == 200
    name = f"resp_{session.rpartition('/')[2]}00000000"
    assert client.responses.retrieve(name).output_text == "hello"
    assert client.responses.input_items.list(name).data[0].content[0].text == "hi"


def test_chains_of_responses_grow_and_branch(client: openai.OpenAI, engine: FakeEngine, session: str) -> None:
    engine.script(thinking_call(), said("sunny"), said("bye"), said("other"))
    first = client.responses.create(model="m", instructions="Help.", input="weather?", tools=RESPONSES_TOOLS)
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


def test_other_instructions_are_another_head(client: openai.OpenAI, engine: FakeEngine, session: str) -> None:
    engine.script(said("a"), said("b"))
    first = client.responses.create(model="m", instructions="Help.", input="q")
    second = client.responses.with_raw_response.create(
        model="m", instructions="Hinder.", previous_response_id=first.id, input="r"
    )
    assert second.headers["X-Tito-Cause"] == "system_changed"
    sent = engine.bodies[-1]["messages"]
    assert [message["content"] for message in sent] == ["Hinder.", "q", "a", "r"]


def test_functions_of_namespaces_are_offered_called_and_replayed(
    client: openai.OpenAI, engine: FakeEngine, session: str
) -> None:
    function: Any = {"type": "function", "name": "look", "description": "l", "parameters": SCHEMA}
    mail: Any = {"type": "namespace", "name": "mcp__mail", "description": "A server.", "tools": [function]}
    tools: list[Any] = [{"type": "web_search"}, mail, *RESPONSES_TOOLS]
    called = {"id": "call_1", "type": "function", "function": {"name": "mcp__mail__look", "arguments": "{}"}}
    message = {"role": "assistant", "content": "", "tool_calls": [called]}
    engine.script(Reply(ids=[104], message=message, finish="tool_calls"), said("sunny"))
    first = client.responses.create(model="m", input="look", tools=tools)
    offered = [tool["function"]["name"] for tool in engine.bodies[-1]["tools"]]
    assert offered == ["mcp__mail__look", "get_weather"]
    [call] = first.output
    assert (call.namespace, call.name, call.call_id) == ("mcp__mail", "look", "call_1")
    items: list[Any] = [{"role": "user", "content": "look"}, call.to_dict()]
    items += [{"type": "function_call_output", "call_id": "call_1", "output": "one"}]
    second = client.responses.with_raw_response.create(model="m", input=items, tools=tools)
    assert second.headers["X-Tito-Attach"] == "append"
    assert leaves(session) == 1
    again = client.responses.retrieve(first.id).to_dict()
    assert again == first.to_dict()
    assert again["tools"] == tools
    listed = client.responses.input_items.list(second.parse().id, order="asc").data
    assert [getattr(item, "namespace", None) for item in listed] == [None, "mcp__mail", None]
