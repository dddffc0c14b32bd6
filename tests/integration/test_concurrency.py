"""Several requests of one session at once: nothing is lost, nothing is attached twice, everybody is told."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core.management import call_command

from sessions_app.models import HistoryEvent, Node, Record, UnattachedReply
from sessions_app.packing import unpack_ids
from tests.client import Answer, Client, reply_of, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.test_bad_input import started, toy  # noqa: F401  (fixture)
from tests.integration.test_cases import fed, says, toy_server

Toy = tuple[Client, FakeEngine]


@pytest.fixture
def pool():
    with ThreadPoolExecutor(8) as executor:
        yield executor


def held(engine: FakeEngine, text: str, ids: list[int]) -> threading.Event:
    """Script a reply that waits for its event."""
    gate = threading.Event()
    engine.script(Reply(ids, message=says(text), gate=gate))
    return gate


def in_flight(pool: ThreadPoolExecutor, engine: FakeEngine, call: Callable[[], Answer]) -> "Future[Answer]":
    """Start a call and wait until the engine has it."""
    seen = len(engine.requests)
    future = pool.submit(call)
    engine.wait_seen(seen + 1)
    return future


def test_two_extensions_in_tree_become_siblings(toy: Toy, pool) -> None:  # noqa: F811
    client, engine = toy
    session, history = started(client, engine)
    first_gate, second_gate = held(engine, "x", [1120, 2]), held(engine, "ok", [102, 2])
    first = in_flight(pool, engine, lambda: client.chat(session, [*history, user("a")]))
    second = in_flight(pool, engine, lambda: client.chat(session, [*history, user("b")]))
    second_gate.set()
    assert second.result().headers["x-tito-attach"] == "append"
    first_gate.set()
    late = first.result()
    assert (late.headers["x-tito-attach"], late.headers["x-tito-cause"]) == ("fork", "concurrent")
    assert list(Node.objects.filter(session_id=session).values_list("parent_seq", flat=True)) == [None, 0, 0]
    assert HistoryEvent.objects.filter(session_id=session, cause="concurrent", node_seq=2).exists()


def test_the_loser_of_a_race_in_rollback_is_told_and_kept(toy: Toy, pool) -> None:  # noqa: F811
    client, engine = toy
    session, history = started(client, engine, history_policy="rollback")
    first_gate, second_gate = held(engine, "x", [1120, 2]), held(engine, "ok", [102, 2])
    first = in_flight(pool, engine, lambda: client.chat(session, [*history, user("a")]))
    second = in_flight(pool, engine, lambda: client.chat(session, [*history, user("b")]))
    second_gate.set()
    second.result()
    before = client.call("GET", f"/sessions/{session}").body
    first_gate.set()
    lost = first.result()
    assert lost.status == 200
    assert (lost.headers["x-tito-recorded"], lost.headers["x-tito-reason"]) == ("false", "concurrent")
    assert client.call("GET", f"/sessions/{session}").body == before
    record = Record.objects.get(session_id=session, state="late")
    kept = UnattachedReply.objects.get(session_id=session, record_id=record.pk)
    assert unpack_ids(kept.completion).tolist() == [1120, 2]


def test_a_session_deleted_during_generation_keeps_the_reply(toy: Toy, pool) -> None:  # noqa: F811
    client, engine = toy
    session, history = started(client, engine)
    gate = held(engine, "ok", [102, 2])
    pending = in_flight(pool, engine, lambda: client.chat(session, [*history, user("a")]))
    assert client.call("DELETE", f"/sessions/{session}").status == 204
    gate.set()
    answer = pending.result()
    assert answer.status == 200
    assert answer.headers["x-tito-reason"] == "session_deleted"
    record = Record.objects.get(session_id=session, state="late")
    assert UnattachedReply.objects.filter(session_id=session, record_id=record.pk).exists()


def test_a_reply_to_a_request_given_up_for_lost_is_kept_beside_the_tree(toy: Toy, pool) -> None:  # noqa: F811
    client, engine = toy
    session, history = started(client, engine)
    gate = held(engine, "ok", [102, 2])
    pending = in_flight(pool, engine, lambda: client.chat(session, [*history, user("a")]))
    call_command("recover", "--older-than-s", "0")
    before = client.call("GET", f"/sessions/{session}").body
    gate.set()
    assert pending.result().headers["x-tito-reason"] == "lost_intent"
    assert client.call("GET", f"/sessions/{session}").body == before
    record = Record.objects.get(session_id=session, reason="lost_intent")
    assert (record.state, record.error_code) == ("late", None)
    kept = UnattachedReply.objects.get(session_id=session, record_id=record.pk)
    assert unpack_ids(kept.completion).tolist() == [102, 2]


def test_a_retry_during_generation_becomes_a_second_root(toy: Toy, pool) -> None:  # noqa: F811
    client, engine = toy
    session = client.create()
    slow, quick = held(engine, "ab", [100, 2]), held(engine, "ok", [102, 2])
    first = in_flight(pool, engine, lambda: client.chat(session, [user("hello")]))
    second = in_flight(pool, engine, lambda: client.chat(session, [user("hello")]))
    quick.set()
    assert second.result().status == 200
    slow.set()
    assert first.result().headers["x-tito-cause"] == "concurrent"
    assert Node.objects.filter(session_id=session, parent_seq=None).count() == 2


def test_many_branches_at_once_are_all_kept(toy: Toy, pool) -> None:  # noqa: F811
    client, engine = toy
    session, history = started(client, engine)
    engine.script(*[Reply([102, 2], message=says("ok"), delay_s=0.05)] * 24)
    answers = list(pool.map(lambda n: client.chat(session, [*history, user("ab " * n)]), range(1, 25)))
    assert {answer.status for answer in answers} == {200}
    nodes = list(Node.objects.filter(session_id=session).order_by("seq"))
    assert [node.seq for node in nodes] == list(range(25))
    assert {node.parent_seq for node in nodes[1:]} == {0}
    assert sorted(int(answer.headers["x-tito-node"]) for answer in answers) == list(range(1, 25))


def test_an_idempotency_key_joins_the_generation_in_flight(toy: Toy, pool) -> None:  # noqa: F811
    client, engine = toy
    session = client.create()
    calls = len(engine.requests)
    gate = held(engine, "ab", [100, 2])
    ask = lambda: client.chat(session, [user("hello")], {"Idempotency-Key": "k1"})  # noqa: E731
    first = in_flight(pool, engine, ask)
    second = pool.submit(ask)
    time.sleep(0.3)
    assert len(engine.requests) == calls + 1
    gate.set()
    assert second.result().json == first.result().json
    assert len(engine.requests) == calls + 1
    assert second.result().headers["x-tito-replayed"] == "true"
    conflict = client.chat(session, [user("ok")], {"Idempotency-Key": "k1"})
    assert (conflict.status, conflict.code) == (409, "idempotency_conflict")
    assert Node.objects.filter(session_id=session).count() == 1


def test_a_failed_request_frees_its_idempotency_key(toy: Toy) -> None:  # noqa: F811
    client, engine = toy
    session = client.create()
    key = {"Idempotency-Key": "k2"}
    engine.script("500", Reply([100, 2], message=says("ab")))
    assert client.chat(session, [user("hello")], key).status == 500
    answer = client.chat(session, [user("hello")], key)
    assert answer.status == 200
    assert "x-tito-replayed" not in answer.headers


def test_the_same_body_at_once_is_generated_once_under_replay(toy: Toy, pool) -> None:  # noqa: F811
    client, engine = toy
    session = client.create(retry_policy="replay")
    calls = len(engine.requests)
    engine.script(Reply([100, 2], message=says("ab"), meta={"routed_experts": None}, delay_s=0.3))
    answers = list(pool.map(lambda _: client.chat(session, [user("hello")]), range(6)))
    assert len(engine.requests) == calls + 1
    assert len({answer.body for answer in answers}) == 1
    assert sorted(answer.headers.get("x-tito-replayed", "") for answer in answers) == ["", *["true"] * 5]
    engine.script("500", Reply([102, 2], message=says("ok")))
    failed = client.chat(session, [user("ok")])
    assert failed.status == 500
    assert client.chat(session, [user("ok")]).headers.get("x-tito-replayed") is None


def test_one_of_those_who_waited_for_a_failed_request_generates(toy: Toy, pool) -> None:  # noqa: F811
    client, engine = toy
    session = client.create()
    calls = len(engine.requests)
    gate = threading.Event()
    engine.script(Reply([100, 2], fault="nan_logprob", gate=gate))
    ask = lambda: client.chat(session, [user("hello")], {"Idempotency-Key": "k5"})  # noqa: E731
    first = in_flight(pool, engine, ask)
    waiting = [pool.submit(ask) for _ in range(6)]
    time.sleep(0.2)
    engine.script(Reply([100, 2], message=says("ab"), delay_s=0.6))
    gate.set()
    assert first.result().code == "upstream_invalid_logprob"
    assert {future.result().status for future in waiting} == {200}
    assert len(engine.requests) == calls + 2
    assert Node.objects.filter(session_id=session).count() == 1


def test_a_stored_reply_is_replayed_after_a_restart(tmp_path) -> None:
    key = {"Idempotency-Key": "k3"}
    with toy_server(tmp_path) as (client, engine):
        session = client.create()
        engine.script(Reply([1097, 1098, 2], logprobs=[-0.1, -0.2, -0.3], message=says("ab")))
        first = client.chat(session, [user("hello")], key)
    with toy_server(tmp_path) as (client, engine):
        second = client.chat(session, [user("hello")], key)
        assert second.json == first.json
        assert engine.requests == []
        streamed = client.chat(session, [user("hello")], key, stream=True)
        assert streamed.code == "idempotency_conflict"


@pytest.mark.parametrize(
    ("options", "headers"), [({}, {"Idempotency-Key": "k"}), ({"retry_policy": "replay"}, {})]
)
def test_a_reply_answers_for_a_time(tmp_path, options: dict[str, str], headers: dict[str, str]) -> None:
    with toy_server(tmp_path, TITO_IDEMPOTENCY_TTL_S="1", TITO_REPLAY_WINDOW_S="1") as (client, engine):
        session = client.create(**options)

        def generated() -> Answer | None:
            answer = client.chat(session, [user("hello")], headers)
            return None if "x-tito-replayed" in answer.headers else answer

        engine.script(Reply([100, 2], message=says("ab")), Reply([102, 2], message=says("ok")))
        assert generated()
        assert generated() is None
        assert eventually(generated).headers["x-tito-attach"] == "retry"


def test_a_key_belongs_to_its_session(toy: Toy) -> None:  # noqa: F811
    client, engine = toy
    key = {"Idempotency-Key": "k7"}
    engine.script(Reply([100, 2], message=says("ab")), Reply([102, 2], message=says("ok")))
    answers = [client.chat(client.create(), [user("hello")], key) for _ in range(2)]
    assert [reply_of(answer)["content"] for answer in answers] == ["ab", "ok"]


def test_a_late_reply_is_replayed_too(toy: Toy, pool) -> None:  # noqa: F811
    client, engine = toy
    session, history = started(client, engine, history_policy="rollback")
    gate, quick = held(engine, "x", [1120, 2]), held(engine, "ok", [102, 2])
    key = {"Idempotency-Key": "k4"}
    first = in_flight(pool, engine, lambda: client.chat(session, [*history, user("a")], key))
    second = in_flight(pool, engine, lambda: client.chat(session, [*history, user("b")]))
    quick.set()
    second.result()
    gate.set()
    lost = first.result()
    again = client.chat(session, [*history, user("a")], key)
    assert again.json == lost.json
    assert (again.headers["x-tito-recorded"], again.headers["x-tito-replayed"]) == ("false", "true")


@contextmanager
def connected_to(client: Client, session: str, *lines: str) -> Iterator[None]:
    """Send a request and leave at the end of the block."""
    parts = urlsplit(client.url)
    body = b'{"messages": [{"role": "user", "content": "hello"}]}'
    more = "".join(f"{line}\r\n" for line in lines)
    with socket.create_connection((parts.hostname, parts.port)) as connection:
        connection.sendall(
            f"POST /sessions/{session}/v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode()
            + body
        )
        yield


@contextmanager
def hanging_up(client: Client, engine: FakeEngine, session: str, *lines: str) -> Iterator[None]:
    """The same, while the engine has it."""
    seen = len(engine.requests)
    with connected_to(client, session, *lines):
        engine.wait_seen(seen + 1)
        yield


def eventually(check: Callable[[], Any], timeout_s: float = 5.0) -> Any:
    deadline = time.monotonic() + timeout_s
    while not (value := check()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
    return value


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


def test_a_cancelled_request_frees_its_idempotency_key_for_who_waits(tmp_path, pool) -> None:
    with toy_server(tmp_path, TITO_ON_DISCONNECT="abort") as (client, engine):
        session, key = client.create(), {"Idempotency-Key": "k"}
        gate = held(engine, "ab", [100, 2])
        with hanging_up(client, engine, session, "Idempotency-Key: k"):
            waiting = pool.submit(client.chat, session, [user("hello")], key)
            time.sleep(0.2)
            engine.script(Reply([102, 2], message=says("ok")))
        answer = waiting.result()
        gate.set()
        assert (reply_of(answer)["content"], answer.headers["x-tito-node"]) == ("ok", "0")
        states = Record.objects.filter(session_id=session).values_list("state", flat=True)
        assert sorted(states) == ["cancelled", "committed"]


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


def test_a_late_reply_names_its_whole_prompt_when_replayed(tmp_path, pool) -> None:
    with toy_server(tmp_path, TITO_BACKEND="vllm-chat", TITO_HISTORY_POLICY="rollback") as (client, engine):
        session, history = started(client, engine)
        served = client.tokens(session)
        prompt = [*served, 3, 1, 5, 3, 102, 2, 3, 1, 6, 3]
        gate = threading.Event()
        engine.script(Reply([1120, 2], message=says("x"), prompt_ids=prompt, gate=gate))
        key = {"Idempotency-Key": "k"}
        ask = lambda: client.chat(session, [*history, user("ok")], key)  # noqa: E731
        late = in_flight(pool, engine, ask)
        engine.script(Reply([102, 2], message=says("ok"), prompt_ids=[*served, 3, 1, 6, 3]))
        assert client.chat(session, history).headers["x-tito-recorded"] == "true"
        gate.set()
        assert late.result().headers["x-tito-recorded"] == "false"
        assert late.result().json["prompt_token_ids"] == prompt
        assert ask().json == late.result().json
