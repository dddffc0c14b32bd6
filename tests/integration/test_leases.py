"""Web processes that are killed, or stopped for longer than their lease, while others live."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from psycopg.errors import ReadOnlySqlTransaction

from sessions_app.models import Node, ProcessLease, Record
from sessions_app.store import leases
from sessions_app.store.pool import Database
from sessions_app.turns.leasing import LeaseKeeper, new_lease
from tests.client import reply_of, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.meanwhile import eventually
from tests.integration.test_cases import says, toy_server
from tests.integration.test_kills import IDS, Story, broken, somebody_waits
from tests.integration.test_processes import environment
from tests.integration.web import database_url, web_processes


def leased(folder: Path, engine: FakeEngine) -> dict[str, str]:
    return {**environment(folder, engine), "TITO_LEASE_S": "1"}


def state_of(session: str) -> str:
    return Record.objects.filter(session_id=session).order_by("-id")[0].state


@pytest.mark.slow
def test_what_a_killed_process_held_is_given_up_by_another_and_its_key_is_free(tmp_path) -> None:
    with FakeEngine() as engine, web_processes(2, leased(tmp_path, engine)) as (victim, other):
        told, key, gate = Story(engine, victim, other), {"Idempotency-Key": "k"}, threading.Event()
        with ThreadPoolExecutor(1) as pool:
            engine.script(Reply([102, 2], message=says("ok"), gate=gate))
            pending = pool.submit(victim.client.chat, told.session, told.history, key)
            engine.wait_seen(2)
            victim.kill()
            gate.set()
            assert broken(pending)
        engine.script(Reply([1111, 2], message=says("o")))
        answer = other.client.chat(told.session, told.history, key)  # without a lease it waits for minutes
        assert reply_of(answer)["content"] == "o"
        states = Record.objects.filter(session_id=told.session).order_by("id").values_list("state", flat=True)
        assert list(states) == ["confirmed", "lost", "committed"]
        eventually(lambda: not ProcessLease.objects.filter(pid=victim.pid).exists())
        assert ProcessLease.objects.filter(pid=other.pid).exists()
        told.nothing_is_half_there()


@pytest.mark.slow
def test_a_process_stopped_beyond_its_lease_commits_nothing_that_was_given_up(tmp_path) -> None:
    with FakeEngine() as engine, web_processes(2, leased(tmp_path, engine)) as (victim, other):
        told, gate = Story(engine, victim, other), threading.Event()
        with ThreadPoolExecutor(1) as pool:
            engine.script(Reply([102, 2], message=says("ok"), gate=gate))
            pending = pool.submit(victim.client.chat, told.session, told.history)
            engine.wait_seen(2)
            victim.pause()
            eventually(lambda: state_of(told.session) == "lost")
            gate.set()
            victim.resume()
            answer = pending.result(30)
        assert (answer.status, answer.headers["x-tito-recorded"]) == (200, "false")
        assert answer.headers["x-tito-reason"] == "lost_intent"
        assert Node.objects.filter(session_id=told.session).count() == 1
        engine.script(Reply([1111, 2], message=says("o")))
        again = victim.client.chat(told.session, told.history)
        assert (again.headers["x-tito-recorded"], again.headers["x-tito-parent"]) == ("true", "0")
        eventually(lambda: ProcessLease.objects.filter(pid=victim.pid).exists())


@pytest.mark.django_db
def test_a_turn_is_given_up_or_committed_and_never_both(tmp_path) -> None:
    with toy_server(tmp_path) as (client, engine), ThreadPoolExecutor(1) as pool:
        session, gate = client.create(), threading.Event()
        engine.script(Reply(IDS, message=says("ab"), gate=gate))
        pending = pool.submit(client.chat, session, [user("hello")])
        engine.wait_seen(1)
        with psycopg.connect(database_url()) as somebody:
            somebody.execute(
                "UPDATE sessions_app_record SET state = 'lost', error_code = 'lost' WHERE session_id = %s",
                (session,),
            )
            gate.set()
            eventually(somebody_waits)  # the commit saw an intent, and now has to look again
        answer = pending.result(30)
        assert (answer.headers["x-tito-recorded"], answer.headers["x-tito-reason"]) == (
            "false",
            "lost_intent",
        )
        left = client.get(session)
        assert left["records"] == []


@pytest.mark.django_db
def test_a_turn_given_up_while_it_is_looked_at_again_is_kept_beside_the_tree(tmp_path) -> None:
    with toy_server(tmp_path) as (client, engine), ThreadPoolExecutor(1) as pool:
        session, gate = client.create(), threading.Event()
        engine.script(Reply(IDS, message=says("ab"), gate=gate))
        pending = pool.submit(client.chat, session, [user("hello")])
        engine.wait_seen(1)
        engine.script(Reply(IDS, message=says("ab")))
        client.chat(session, [user("another")])  # the session moves on
        with psycopg.connect(database_url()) as somebody:
            somebody.execute(
                "UPDATE sessions_app_record SET state = 'lost', error_code = 'lost' "
                "WHERE session_id = %s AND state = 'intent'",
                (session,),
            )
            gate.set()
            eventually(somebody_waits)
        answer = pending.result(30)
        assert (answer.status, answer.headers.get("x-tito-reason")) == (200, "lost_intent"), answer.body
        assert Node.objects.filter(session_id=session).count() == 1


@pytest.mark.django_db
def test_a_lease_goes_on_after_a_database_that_could_not_be_written(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A primary that became a standby says so with an error of its own class."""
    renew, renewed, refusals = leases.renew, threading.Event(), iter([ReadOnlySqlTransaction()])

    async def refusing(db: Database, lease: leases.Lease) -> None:
        for refusal in refusals:
            raise refusal
        await renew(db, lease)
        renewed.set()

    monkeypatch.setattr(leases, "renew", refusing)
    keeper = LeaseKeeper(database_url(), new_lease("standby", 1.0), older_than_s=3600)
    keeper.start()
    try:
        assert renewed.wait(30)
    finally:
        asyncio.run(keeper.close())
    assert "cannot be renewed: ReadOnlySqlTransaction" in caplog.text
    assert "can be renewed again" in caplog.text
