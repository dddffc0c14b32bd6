"""Requests that come twice, at once or later: one generation, one reply for all of them."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from sessions_app.models import Node, Record
from tests.client import Answer, Client, reply_of, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.meanwhile import eventually, hanging_up, held, in_flight
from tests.integration.test_bad_input import started, toy  # noqa: F401  (fixture)
from tests.integration.test_cases import says, toy_server

Toy = tuple[Client, FakeEngine]


@pytest.fixture
def pool():
    with ThreadPoolExecutor(8) as executor:
        yield executor


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
