"""Agent names of traces on our nodes."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from sessions_app.models import Node
from tests.client import Client, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.servers import shared_server, toy_environment
from tests.integration.spans_support import batch, make_ready, on_pool, send, span, stored
from trainer_export.models import TracedSession
from trainer_export.spans import labelling
from trainer_export.spans.labelling import label_due


@pytest.fixture(scope="module")
def client(engine: FakeEngine, django_db_setup: None, django_db_blocker: Any) -> Iterator[Client]:
    with shared_server(django_db_blocker, toy_environment(engine)) as url:
        yield Client(url)


@pytest.fixture(autouse=True)
def ids(engine: FakeEngine) -> None:
    engine.script(*(Reply(ids=[104, 105], identity=f"chatcmpl-{uuid.uuid4().hex}") for _ in range(2)))


def chat(client: Client, session: str, text: str = "hello") -> str:
    return client.chat(session, [user(text)]).json["id"]


def call(span_id: int, trace: int, parent: int | None, response: str, **fields: Any) -> dict[str, Any]:
    told = {"gen_ai.operation.name": "chat", "gen_ai.response.id": response}
    return span(span_id, trace, parent, "chat m", attributes=told, **fields)


def agent(span_id: int, trace: int, parent: int | None, name: str, **fields: Any) -> dict[str, Any]:
    told = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
    return span(span_id, trace, parent, f"invoke_agent {name}", attributes=told, **fields)


def labels(session: str) -> list[str | None]:
    return list(Node.objects.filter(session_id=session).order_by("seq").values_list("agent", flat=True))


def label(session: str) -> None:
    make_ready(uuid.UUID(session))


def test_the_agent_above_a_call_names_its_node_whenever_it_arrives(client: Client) -> None:
    session, trace = client.create(), uuid.uuid4().int
    first, second = chat(client, session), chat(client, session, "again")
    send(client, batch(call(3, trace, 2, first), call(4, trace, 2, second), tito__session_id=session))
    label(session)
    assert labels(session) == [None, None]
    send(client, batch(agent(1, trace, None, "outer"), tito__session_id=session))
    label(session)
    send(client, batch(agent(2, trace, 1, "inner"), tito__session_id=session))
    label(session)
    assert labels(session) == ["inner", "inner"]
    assert {row.agent for row in stored(trace) if row.is_call} == {"inner"}


def test_a_trace_knows_better_than_a_header_which_is_kept(client: Client) -> None:
    session, trace = client.create(), uuid.uuid4().int
    headers = {"x-tito-agent": "by header"}
    first = client.chat(session, [user("hello")], headers).json["id"]
    assert labels(session) == ["by header"]
    send(client, batch(call(3, trace, 1, first), tito__session_id=session))
    send(client, batch(agent(1, trace, None, "outer"), tito__session_id=session))
    label(session)
    assert labels(session) == ["outer"]
    send(client, batch(agent(5, trace, 1, "nearer", start=2, end=9), tito__session_id=session))
    label(session)
    assert labels(session) == ["nearer"]
    assert [row.agent_before for row in stored(trace) if row.is_call] == ["by header"]


def test_traces_that_share_span_ids_are_told_apart(client: Client) -> None:
    session, numbers = client.create(), [uuid.uuid4().int for _ in range(2)]
    for number, name in zip(numbers, ("one", "two"), strict=True):
        told = chat(client, session, name)
        send(client, batch(call(2, number, 1, told), agent(1, number, None, name), tito__session_id=session))
    label(session)
    assert labels(session) == ["one", "two"]
    assert [{row.agent for row in stored(number) if row.is_call} for number in numbers] == [{"one"}, {"two"}]


def test_spans_that_name_nothing_label_as_well(client: Client) -> None:
    session, trace = client.create(), uuid.uuid4().int
    send(client, batch(call(2, trace, 1, chat(client, session)), agent(1, trace, None, "solver")))
    label(session)
    assert labels(session) == ["solver"]


def test_the_session_of_another_rollout_is_not_labelled(client: Client) -> None:
    session, other, trace = client.create(), client.create(), uuid.uuid4().int
    spans = [call(2, trace, 1, chat(client, session)), agent(1, trace, None, "intruder")]
    send(client, batch(*spans, tito__session_id=other))
    label(other)
    assert labels(session) == [None]


def test_sessions_of_one_rollout_label_each_other(client: Client) -> None:
    rollout, trace = uuid.uuid4().hex, uuid.uuid4().int
    session = client.create(rollout_id=rollout, attempt_id="served")
    spans = [call(2, trace, 1, chat(client, session)), agent(1, trace, None, "solver")]
    send(client, batch(*spans, tito__rollout_id=rollout, tito__attempt_id="traced"))
    label(stored(trace)[0].session_id.hex)
    assert labels(session) == ["solver"]


def test_the_worker_finds_what_is_due_once(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labelling, "_ARRIVING_S", -1.0)
    session, trace = client.create(), uuid.uuid4().int
    spans = [call(2, trace, 1, chat(client, session)), agent(1, trace, None, "solver")]
    send(client, batch(*spans, tito__session_id=session))
    on_pool(label_due, label_due)
    assert labels(session) == ["solver"]
    assert TracedSession.objects.get(session_id=session).labelled_at is not None
