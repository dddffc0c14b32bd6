"""Several requests of one session at once: nothing is lost, nothing is attached twice, everybody is told."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.management import call_command

from sessions_app.models import HistoryEvent, Node, Record, UnattachedReply
from sessions_app.packing import unpack_ids
from tests.client import Client, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.meanwhile import held, in_flight
from tests.integration.test_bad_input import started, toy  # noqa: F401  (fixture)
from tests.integration.test_cases import says

Toy = tuple[Client, FakeEngine]


@pytest.fixture
def pool():
    with ThreadPoolExecutor(8) as executor:
        yield executor


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
