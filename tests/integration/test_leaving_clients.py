"""Clients that leave while an engine generates, and what those hear who stay."""

import time

from sessions_app.models import Node, Record
from tests.client import Client, reply_of, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.meanwhile import eventually, hanging_up, held
from tests.integration.test_bad_input import started, toy  # noqa: F401  (fixture)
from tests.integration.test_cases import fed, says, toy_server

Toy = tuple[Client, FakeEngine]


def test_a_vanished_client_does_not_lose_the_turn(toy: Toy) -> None:  # noqa: F811
    client, engine = toy
    session = client.create()
    gate = held(engine, "ab", [100, 2])
    with hanging_up(client, engine, session):
        pass
    time.sleep(0.1)
    gate.set()
    eventually(lambda: Node.objects.filter(session_id=session).exists())
    engine.script(Reply([102, 2], message=says("ok")))
    assert client.chat(session, [user("hello"), says("ab"), user("ok")]).headers["x-tito-parent"] == "0"


def test_a_vanished_client_cancels_the_engine_when_so_set(tmp_path) -> None:
    with toy_server(tmp_path, TITO_ON_DISCONNECT="abort") as (client, engine):
        session = client.create()
        gate = held(engine, "ab", [100, 2])
        with hanging_up(client, engine, session):
            pass
        record = eventually(lambda: Record.objects.filter(session_id=session, state="cancelled").first())
        gate.set()
        assert record.error_code == "cancelled"
        eventually(lambda: engine.abandoned == 1)
        assert not Node.objects.filter(session_id=session).exists()
        engine.script(Reply([102, 2], message=says("ok")))
        assert client.chat(session, [user("hello")]).headers["x-tito-node"] == "0"


def test_a_stream_keeps_alive_while_it_waits_and_ends_with_its_own_error(tmp_path) -> None:
    with toy_server(tmp_path, TITO_KEEPALIVE_S="0.1") as (client, engine):
        session = client.create()
        engine.script(Reply([100, 2], message=says("ab"), delay_s=0.35))
        body = client.chat(session, [user("hello")], stream=True).body.decode()
        assert body.count(": keep-alive\n\n") >= 2
        assert body.endswith("data: [DONE]\n\n")
        assert fed(engine, 0)
        engine.script(Reply([100, 2], message=says("ab"), delay_s=0.35, fault="nan_logprob"))
        failed = client.chat(session, [user("ok")], stream=True)
        assert failed.status == 200
        assert '"code":"upstream_invalid_logprob"' in failed.body.decode()
        assert failed.body.decode().endswith("data: [DONE]\n\n")


def test_a_json_reply_keeps_alive_with_blanks_when_so_set(tmp_path) -> None:
    with toy_server(tmp_path, TITO_KEEPALIVE_S="0.1", TITO_JSON_KEEPALIVE="on") as (client, engine):
        session = client.create()
        engine.script(Reply([100, 2], message=says("ab"), delay_s=0.35))
        answer = client.chat(session, [user("hello")])
        assert answer.body.startswith(b"  ")
        assert reply_of(answer)["content"] == "ab"
        engine.script(Reply([100, 2], message=says("ab"), delay_s=0.35, fault="nan_logprob"))
        failed = client.chat(session, [user("ok")])
        assert failed.json["status"] == 502
