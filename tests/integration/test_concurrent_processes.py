"""Races on one session between real processes: a request is generated once, kept once, and told its fate."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle

import pytest

from sessions_app.models import Node, Record
from tests.client import Answer, Client, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.meanwhile import held, in_flight
from tests.integration.test_bad_input import started
from tests.integration.test_cases import says
from tests.integration.test_processes import environment
from tests.integration.web import web_processes

pytestmark = pytest.mark.slow
Both = tuple[Client, Client, FakeEngine]


@pytest.fixture(scope="module")
def both(tmp_path_factory, django_db_setup, django_db_blocker) -> Iterator[Both]:
    with django_db_blocker.unblock(), FakeEngine() as engine:
        folder = tmp_path_factory.mktemp("toy")
        with web_processes(2, environment(folder, engine)) as (first, second):
            yield first.client, second.client, engine


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(12) as executor:
        yield executor


def at_once(
    pool: ThreadPoolExecutor, both: Both, session: str, requests: list, **headers: str
) -> list[Answer]:
    """Requests sent to the two processes in turn, all at the same time."""
    pairs = zip(cycle(both[:2]), requests, strict=False)
    calls = [pool.submit(client.chat, session, request, headers) for client, request in pairs]
    return [call.result() for call in calls]


@pytest.mark.parametrize("policy", ["resample", "replay"])
def test_one_request_sent_many_times_is_generated_once(both: Both, pool, policy: str) -> None:
    first, _, engine = both
    session = first.create(retry_policy=policy)
    calls = len(engine.requests)
    engine.script(Reply([1097, 1098, 2], message=says("ab"), delay_s=0.3))
    headers = {"Idempotency-Key": "k"} if policy == "resample" else {}
    answers = at_once(pool, both, session, [[user("hello")]] * 10, **headers)
    assert {answer.status for answer in answers} == {200}
    assert len({answer.body for answer in answers}) == 1
    assert len(engine.requests) == calls + 1
    assert Node.objects.filter(session_id=session).count() == 1
    assert Record.objects.filter(session_id=session, state="replayed").count() == 9


def test_branches_of_one_node_are_all_kept(both: Both, pool) -> None:
    first, second, engine = both
    session, history = started(first, engine)
    engine.script(*[Reply([102, 2], message=says("ok"), delay_s=0.1)] * 12)
    answers = at_once(pool, both, session, [[*history, user("ab " * n)] for n in range(1, 13)])
    assert sorted(int(answer.headers["x-tito-node"]) for answer in answers) == list(range(1, 13))
    parents = Node.objects.filter(session_id=session, seq__gt=0).values_list("parent_seq", flat=True)
    assert set(parents) == {0}
    shown = [client.call("GET", f"/sessions/{session}").body for client in (first, second)]
    assert shown[0] == shown[1]


def test_in_rollback_one_of_many_extensions_is_recorded(both: Both, pool) -> None:
    first, second, engine = both
    session, history = started(first, engine, history_policy="rollback")
    engine.script(*[Reply([102, 2], message=says("ok"), delay_s=0.3)] * 6)
    answers = at_once(pool, both, session, [[*history, user("ab " * n)] for n in range(1, 7)])
    recorded = [answer.headers["x-tito-recorded"] for answer in answers]
    assert sorted(recorded) == ["false"] * 5 + ["true"]
    assert Record.objects.filter(session_id=session, state="late", reason="concurrent").count() == 5
    assert len(second.get(session)["records"]) == 2


def test_a_retry_elsewhere_during_generation_wins_if_it_ends_first(both: Both, pool) -> None:
    first, second, engine = both
    session, history = started(first, engine, history_policy="rollback")
    gate = held(engine, "x", [1120, 2])
    pending = in_flight(pool, engine, lambda: first.chat(session, [*history, user("a")]))
    engine.script(Reply([102, 2], message=says("ok")))
    assert second.chat(session, [user("hello")]).headers["x-tito-attach"] == "rollback"
    after = second.call("GET", f"/sessions/{session}").body
    gate.set()
    assert pending.result().headers["x-tito-reason"] == "concurrent"
    assert first.call("GET", f"/sessions/{session}").body == after


@pytest.mark.parametrize("policy", ["tree", "rollback", "linear"])
def test_a_session_deleted_elsewhere_is_gone_here(both: Both, pool, policy: str) -> None:
    first, second, engine = both
    key = {"Idempotency-Key": "k"}
    session = first.create(history_policy=policy)
    engine.script(Reply([100, 2], message=says("ab")))
    first.chat(session, [user("hello")], key)
    gate = held(engine, "ok", [102, 2])
    history = [user("hello"), says("ab"), user("a")]
    pending = in_flight(pool, engine, lambda: first.chat(session, history))
    assert second.call("DELETE", f"/sessions/{session}").status == 204
    path, calls = f"/sessions/{session}/v1/chat/completions", len(engine.requests)
    for answer in (
        first.chat(session, history),
        first.chat(session, [user("hello")], key),
        first.call("POST", path, b"{nope"),
        first.call("GET", f"/sessions/{session}"),
        first.call("POST", f"/sessions/{session}/samples", b"{}"),
        first.call("POST", f"/sessions/{session}/tokenize", b"{}"),
        first.call("DELETE", f"/sessions/{session}"),
    ):
        assert (answer.status, answer.code) == (404, "session_not_found"), answer.body
    assert len(engine.requests) == calls
    gate.set()
    late = pending.result()
    assert (late.status, late.headers["x-tito-reason"]) == (200, "session_deleted")
    states = Record.objects.filter(session_id=session).values_list("state", flat=True)
    assert sorted(states) == ["confirmed", "late"]
