"""Requests that end neither with a reply nor with a refusal: each leaves a record of its end, and the tree as
it was."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from sessions_app.api import access, runtime
from sessions_app.errors import NotReady
from sessions_app.models import HistoryEvent, Node, Record, UnattachedReply
from sessions_app.packing import unpack_ids
from sessions_app.turns import generating, ledger, prepare, service, storing
from tests.client import Client, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.meanwhile import connected_to, eventually, held, in_flight
from tests.integration.test_bad_input import started, toy  # noqa: F401  (fixture)
from tests.integration.test_cases import says, toy_server

Toy = tuple[Client, FakeEngine]


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as executor:
        yield executor


def breaking(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("secret words")


def ends(session: str) -> list[tuple[Any, ...]]:
    """How requests ended, in order."""
    records = Record.objects.filter(session_id=session).order_by("id")
    return list(records.values_list("state", "error_code", "status_code"))


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/sessions/{}/v1/chat/completions", {"error": "internal error"}),
        (
            "/sessions/{}/v1/messages",
            {"type": "error", "error": {"type": "api_error", "message": "internal error"}},
        ),
    ],
)
def test_a_reply_that_cannot_be_stored_is_kept_and_its_caller_told(
    toy: Toy,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    path: str,
    form: Any,
) -> None:
    client, engine = toy
    session, history = started(client, engine)
    before = client.call("GET", f"/sessions/{session}").body
    body = {"model": "m", "max_tokens": 5, "messages": [*history, user("x")]}
    key = {"Idempotency-Key": "k"}
    engine.script(Reply([1120, 2], message=says("x")), Reply([102, 2], message=says("ok")))
    with monkeypatch.context() as broken:
        broken.setattr(storing, "commit_turn", breaking)
        answer = client.call("POST", path.format(session), body, key)
    assert (answer.status, answer.code, answer.json) == (500, "internal_error", form)
    assert (answer.headers["x-tito-recorded"], answer.headers["x-tito-reason"]) == ("false", "internal_error")
    assert client.call("GET", f"/sessions/{session}").body == before
    record = Record.objects.get(session_id=session, state="late")
    assert (record.reason, record.error_code, record.status_code) == ("internal_error", "internal_error", 500)
    kept = UnattachedReply.objects.get(session_id=session, record_id=record.pk)
    assert unpack_ids(kept.completion).tolist() == [1120, 2]
    assert "secret" not in (record.error_text or "") + caplog.text
    assert "ZeroDivisionError at " in caplog.text
    assert not HistoryEvent.objects.filter(session_id=session, record_id=record.pk).exists()
    again = client.call("POST", path.format(session), body, key)
    assert (again.status, again.headers["x-tito-node"]) == (200, "1")
    assert "x-tito-replayed" not in again.headers


def test_under_replay_a_reply_that_was_not_stored_is_generated_again(
    toy: Toy,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client, engine = toy
    session = client.create(retry_policy="replay")
    engine.script(Reply([1120, 2], message=says("x")), Reply([102, 2], message=says("ok")))
    with monkeypatch.context() as broken:
        broken.setattr(storing, "chat_reply", breaking)
        assert client.chat(session, [user("hello")]).status == 500
    answer = client.chat(session, [user("hello")])
    assert (answer.status, answer.headers.get("x-tito-replayed")) == (200, None)
    assert ends(session) == [("late", "internal_error", 500), ("committed", None, 200)]


@pytest.mark.parametrize(
    ("module", "name", "ended"),
    [
        (prepare.rooting, "root_label", ("refused", "internal_error", 500)),
        (generating, "generation_request", ("refused", "internal_error", 500)),
        (service.Replays, "settle", ("refused", "internal_error", 500)),
        (service.Replays, "earlier_reply", ("refused", "internal_error", 500)),
        (service.Profiles, "get", ("refused", "internal_error", 500)),
    ],
)
def test_what_goes_wrong_before_the_engine_is_asked_is_recorded(
    toy: Toy,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    module: Any,
    name: str,
    ended: Any,
) -> None:
    client, engine = toy
    session, calls, key = client.create(), len(engine.requests), {"Idempotency-Key": "k"}
    with monkeypatch.context() as broken:
        broken.setattr(module, name, breaking)
        answer = client.chat(session, [user("hello")], key)
    assert (answer.status, answer.json) == (500, {"error": "internal error"})
    assert ends(session) == [ended]
    assert len(engine.requests) == calls
    engine.script(Reply([102, 2], message=says("ok")))
    assert client.chat(session, [user("hello")], key).headers["x-tito-node"] == "0"


def test_what_goes_wrong_with_the_engine_is_recorded(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    from sessions_app.backends.sglang import SglangChat

    client, engine = toy
    session = client.create()
    with monkeypatch.context() as broken:
        broken.setattr(SglangChat, "generate", breaking)
        assert client.chat(session, [user("hello")]).status == 500
    assert ends(session) == [("upstream_error", "internal_error", 500)]
    engine.script(Reply([102, 2], message=says("ok")))
    assert client.chat(session, [user("hello")]).headers["x-tito-node"] == "0"


def test_a_client_that_leaves_before_the_engine_is_asked_leaves_a_record(tmp_path) -> None:
    with toy_server(tmp_path, TITO_ON_DISCONNECT="abort") as (client, engine):
        session, key = client.create(), {"Idempotency-Key": "k"}
        assert client.call("POST", "/admin-api/pause", {}).status == 200
        with connected_to(client, session, "Idempotency-Key: k"):
            eventually(lambda: runtime.current().turns.held)
        eventually(lambda: ends(session) == [("cancelled", "cancelled", None)])
        assert client.call("POST", "/admin-api/resume", {}).status == 200
        assert engine.requests == []
        assert not Node.objects.filter(session_id=session).exists()
        engine.script(Reply([102, 2], message=says("ok")))
        assert client.chat(session, [user("hello")], key).headers["x-tito-node"] == "0"


def test_a_client_that_leaves_while_it_waits_for_an_earlier_request_leaves_a_record(tmp_path, pool) -> None:
    with toy_server(tmp_path, TITO_ON_DISCONNECT="abort") as (client, engine):
        session, key = client.create(), {"Idempotency-Key": "k"}
        gate = held(engine, "ab", [100, 2])
        first = in_flight(pool, engine, lambda: client.chat(session, [user("hello")], key))
        with connected_to(client, session, "Idempotency-Key: k"):
            eventually(lambda: runtime.current().turns.in_flight == 2)
        eventually(lambda: ends(session)[1:] == [("cancelled", "cancelled", None)])
        gate.set()
        assert first.result().status == 200
        assert len(engine.requests) == 1


def test_a_client_that_leaves_before_its_session_is_found_leaves_a_record(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its turn is cancelled once there is one."""
    found = access.open_session

    async def slowly(*arguments: Any) -> Any:
        await asyncio.sleep(0.5)
        return await found(*arguments)

    with toy_server(tmp_path, TITO_ON_DISCONNECT="abort") as (client, engine):
        session = client.create()
        with monkeypatch.context() as slowed:
            slowed.setattr(access, "open_session", slowly)
            with connected_to(client, session):
                pass
            eventually(lambda: ends(session) == [("cancelled", "cancelled", None)])
        assert engine.requests == []


@pytest.mark.parametrize("policy", ["rollback", "linear", "tree"])
def test_a_finished_session_says_so_before_anything_of_its_history(toy: Toy, policy: str) -> None:  # noqa: F811
    client, engine = toy
    session = client.create(history_policy=policy, on_nonlinear="error")
    history = [user("hello")]
    for _ in range(3):
        engine.script(Reply([102, 2], message=says("ok")))
        assert client.chat(session, history).status == 200
        history = [*history, says("ok"), user("ok")]
    client.call("POST", f"/sessions/{session}/finish", {})
    for messages in (history, [user("other")], [], [user("hello"), user("x")]):
        answer = client.chat(session, messages)
        assert (answer.status, answer.code) == (409, "session_closed")


def test_a_refusal_is_told_although_it_cannot_be_recorded(
    toy: Toy,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def away(*_: Any, **__: Any) -> int:
        raise NotReady("no database connection became free in time")

    client, _ = toy
    session = client.create()
    with monkeypatch.context() as broken:
        broken.setattr(ledger.records, "insert", away)
        answer = client.chat(session, [user("hello")], n=2)
    assert (answer.status, answer.code) == (400, "n_not_supported")
    assert ends(session) == []


@pytest.mark.parametrize(
    ("limit", "reason", "cause"),
    [("TITO_MAX_NODES", "node_limit", "node_limit"), ("TITO_MAX_TURNS", "max_turns", "late_reply")],
)
def test_a_limit_of_turns_holds_for_turns_at_once(tmp_path, pool, limit, reason, cause) -> None:
    with toy_server(tmp_path, **{limit: "2"}) as (client, engine):
        session, history = started(client, engine)
        gates = [held(engine, "x", [1120, 2]), held(engine, "ok", [102, 2])]
        calls = [
            in_flight(pool, engine, lambda n=n: client.chat(session, [*history, user("a" * n)]))
            for n in (1, 2)
        ]
        gates[0].set()
        assert calls[0].result().headers["x-tito-node"] == "1"
        gates[1].set()
        late = calls[1].result()
        assert (late.status, late.headers["x-tito-reason"]) == (200, reason)
        assert Node.objects.filter(session_id=session).count() == 2
        record = Record.objects.get(session_id=session, state="late")
        assert HistoryEvent.objects.get(session_id=session, record_id=record.pk).cause == cause
