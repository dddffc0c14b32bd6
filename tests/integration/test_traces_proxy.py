"""Agents that only have a URL: sessions on first use, ids of responses that lead back to their nodes."""

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from sessions_app.models import Node, Session
from tests.client import Answer, Client
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.servers import shared_server, toy_environment
from tests.integration.spans_support import batch, make_ready, on_pool, send, span, stored
from trainer_export.spans.responses import ServedNode, nodes_of_responses

MESSAGES = [{"role": "user", "content": "hello"}]
PATHS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("v1/chat/completions", {"messages": MESSAGES}),
    "messages": ("v1/messages", {"messages": MESSAGES, "max_tokens": 9}),
    "responses": ("v1/responses", {"input": "hello"}),
}


@pytest.fixture(scope="module")
def client(engine: FakeEngine, django_db_setup: None, django_db_blocker: Any) -> Iterator[Client]:
    environment = toy_environment(engine) | {"TITO_KEEPALIVE_S": "0.05"}
    with shared_server(django_db_blocker, environment) as url:
        yield Client(url)


def told_ids(answer: Answer) -> set[str]:
    """Every id of a response that a reply or its events tell."""
    if answer.headers["content-type"].startswith("application/json"):
        return {answer.json["id"]}
    events = [
        json.loads(line[6:])
        for line in answer.body.decode().splitlines()
        if line.startswith("data: ") and line != "data: [DONE]"
    ]
    places = [event for event in events if "object" in event]
    places += [event[name] for event in events for name in ("message", "response") if name in event]
    return {place["id"] for place in places}


def found(told: str) -> list[ServedNode]:
    """The nodes that an id leads to."""
    answers: list[dict[str, list[ServedNode]]] = []

    async def look(db: Any) -> None:
        answers.append(await nodes_of_responses(db, [told]))

    on_pool(look)
    return answers[0].get(told, [])


@pytest.mark.parametrize("delay_s", [0.0, 0.2], ids=["at once", "after keep-alives"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("protocol", PATHS)
def test_the_id_that_a_client_is_told_leads_to_its_node(
    client: Client, engine: FakeEngine, protocol: str, stream: bool, delay_s: float
) -> None:
    rollout = uuid.uuid4().hex
    path, body = PATHS[protocol]
    engine.script(Reply(ids=[104], identity=f"chatcmpl-{uuid.uuid4().hex}", delay_s=delay_s))
    answer = client.call("POST", f"/rollout/{rollout}/attempt/1/{path}", {**body, "stream": stream})
    session = Session.objects.get(rollout_id=rollout, attempt_id="1")
    (told,) = told_ids(answer)
    assert found(told) == [ServedNode(session.id, 0)]
    assert Node.objects.filter(session=session).count() == 1


def test_an_engine_s_own_id_is_kept_through_a_stream(client: Client, engine: FakeEngine) -> None:
    identity = f"resp-{uuid.uuid4().hex}"
    engine.script(Reply(ids=[104], identity=identity), Reply(ids=[104], identity=identity + "b"))
    path = f"/rollout/{uuid.uuid4().hex}/attempt/1/v1/chat/completions"
    assert told_ids(client.call("POST", path, {"messages": MESSAGES, "stream": True})) == {identity}
    assert told_ids(client.call("POST", path, {"messages": MESSAGES})) == {identity + "b"}


def test_a_replayed_reply_has_the_id_of_the_first(client: Client, engine: FakeEngine) -> None:
    engine.script(Reply(ids=[104], identity=f"chatcmpl-{uuid.uuid4().hex}"))
    session, key = client.create(), {"idempotency-key": uuid.uuid4().hex}
    path = f"/sessions/{session}/v1/chat/completions"
    first = told_ids(client.call("POST", path, {"messages": MESSAGES}, key))
    again = client.call("POST", path, {"messages": MESSAGES}, key)
    assert again.headers["x-tito-replayed"] == "true"
    assert told_ids(again) == first


@pytest.mark.parametrize("protocol", PATHS)
def test_a_span_with_the_told_id_is_joined_whatever_the_protocol(
    client: Client, engine: FakeEngine, protocol: str
) -> None:
    rollout, trace = uuid.uuid4().hex, uuid.uuid4().int
    path, body = PATHS[protocol]
    engine.script(Reply(ids=[104], identity=f"chatcmpl-{uuid.uuid4().hex}"))
    base = f"/rollout/{rollout}/attempt/1"
    (told,) = told_ids(client.call("POST", f"{base}/{path}", {**body, "stream": True}))
    named = {"gen_ai.operation.name": "chat", "gen_ai.response.id": told}
    spans = [
        span(1, trace, None, "run", attributes={"agent.name": "solver"}),
        span(2, trace, 1, "chat m", attributes=named),
    ]
    assert send(client, batch(*spans), f"{base}/v1/traces").json == {}
    session = Session.objects.get(rollout_id=rollout)
    assert {row.session_id for row in stored(trace)} == {session.id}
    make_ready(session.id)
    assert Node.objects.get(session=session).agent == "solver"


def test_traces_and_calls_of_an_attempt_meet_in_one_session_whichever_comes_first(
    client: Client, engine: FakeEngine
) -> None:
    rollout, trace = uuid.uuid4().hex, uuid.uuid4().int
    base = f"/rollout/{rollout}/attempt/a"
    send(client, batch(span(1, trace)), f"{base}/v1/traces")
    engine.script(Reply(ids=[104]))
    assert client.call("POST", f"{base}/v1/chat/completions", {"messages": MESSAGES}).status == 200
    session = Session.objects.get(rollout_id=rollout)
    assert stored(trace)[0].session_id == session.id
    assert Node.objects.filter(session=session).count() == 1
