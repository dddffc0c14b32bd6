"""Real kills and restarts at each moment of a turn. After each: what was acknowledged is there, nothing is
half there, the next turn is fed the exact ids by another process, and every request has an end.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from django.core.management import call_command

from sessions_app.models import Node, Record, TokenCheckpoint
from tests.client import reply_of, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.meanwhile import eventually
from tests.integration.test_cases import fed, says
from tests.integration.test_processes import environment
from tests.integration.web import ROOT, WebProcess, database_url, web_processes
from tito_project.embedded.home import prepare_home
from tito_project.embedded.places import places_of
from tito_project.embedded.postgres import EmbeddedPostgres
from tito_project.embedded.valkey import EmbeddedValkey

pytestmark = pytest.mark.slow
IDS = [1097, 1098, 2]


class Story:
    """One session with one acknowledged turn, a process to be killed and another that goes on."""

    def __init__(self, engine: FakeEngine, victim: WebProcess, other: WebProcess) -> None:
        self.engine, self.victim, self.other = engine, victim, other
        self.session = victim.client.create()
        engine.script(Reply(IDS, message=says("ab")))
        first = reply_of(victim.client.chat(self.session, [user("hello")]))
        self.served = [*fed(engine, 0), *IDS]
        self.history = [user("hello"), first, user("ok")]

    def goes_on(self) -> Record:
        """The next turn by the other process, and the end of what the killed one left; its record."""
        self.engine.script(Reply([1111, 2], message=says("o")))
        answer = self.other.client.chat(self.session, self.history)
        assert answer.headers["x-tito-parent"] == "0"
        assert fed(self.engine, -1)[: len(self.served)] == self.served
        time.sleep(0.05)
        call_command("recover", "--older-than-s", "0")
        self.nothing_is_half_there()
        return Record.objects.filter(session_id=self.session).order_by("id")[1]

    def nothing_is_half_there(self) -> None:
        """Each node has its tokens and its record, each record an end."""
        nodes = list(Node.objects.filter(session_id=self.session).values_list("seq", flat=True))
        assert sorted(nodes) == list(range(len(nodes)))
        checkpoints = TokenCheckpoint.objects.filter(session_id=self.session)
        assert sorted(checkpoints.values_list("node_seq", flat=True)) == sorted(nodes)
        records = Record.objects.filter(session_id=self.session)
        attached = [seq for seq in records.values_list("node_seq", flat=True) if seq is not None]
        assert sorted(attached) == sorted(nodes)
        ends = {"committed", "confirmed", "lost"}
        assert set(records.values_list("state", flat=True)) <= ends


@contextmanager
def story(folder: Path) -> Iterator[Story]:
    with FakeEngine() as engine, web_processes(2, environment(folder, engine)) as (victim, other):
        yield Story(engine, victim, other)


@contextmanager
def locked_session(session: str, strength: LiteralString = "FOR UPDATE") -> Iterator[None]:
    """Holds the session's row, so that a commit has to wait."""
    with psycopg.connect(database_url()) as holder:
        holder.execute("SELECT 1 FROM sessions_app_session WHERE id = %s " + strength, (session,))
        yield


def somebody_waits() -> bool:
    with psycopg.connect(database_url(), autocommit=True) as watcher:
        row = watcher.execute(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE wait_event_type = 'Lock' AND application_name = 'tito'"
        ).fetchone()
    return bool(row and row[0])


def broken(pending: Any) -> bool:
    return isinstance(pending.exception(30), OSError | HTTPException)


def test_a_kill_before_the_answer_of_the_engine(tmp_path) -> None:
    with story(tmp_path) as told, ThreadPoolExecutor(1) as pool:
        gate = threading.Event()
        told.engine.script(Reply([102, 2], message=says("ok"), gate=gate))
        pending = pool.submit(told.victim.client.chat, told.session, told.history)
        told.engine.wait_seen(2)
        told.victim.kill()
        gate.set()
        assert broken(pending)
        left = told.goes_on()
        assert (left.state, left.node_seq, left.error_code) == ("lost", None, "lost")


def test_a_kill_while_the_commit_waits(tmp_path) -> None:
    with story(tmp_path) as told, ThreadPoolExecutor(1) as pool:
        told.engine.script(Reply([102, 2], message=says("ok"), delay_s=1.0))
        pending = pool.submit(told.victim.client.chat, told.session, told.history)
        told.engine.wait_seen(2)
        with locked_session(told.session):
            eventually(somebody_waits)
            told.victim.kill()
            assert broken(pending)
        # The statement was with the database already: it holds as a whole, or not at all.
        time.sleep(0.5)
        whole = Node.objects.filter(session_id=told.session, seq=1).exists()
        left = told.goes_on()
        assert (left.state, left.node_seq) == (("committed", 1) if whole else ("lost", None))


def committed_and_not_told(told: Story, headers: dict[str, str] | None = None) -> None:
    """The next turn is committed, and its process killed before it can say so."""
    told.engine.script(Reply([102, 2], message=says("ok"), delay_s=1.0))
    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(told.victim.client.chat, told.session, told.history, headers)
        told.engine.wait_seen(2)
        with locked_session(told.session):
            eventually(somebody_waits)
            told.victim.pause()
        eventually(lambda: Node.objects.filter(session_id=told.session, seq=1).exists())
        told.victim.kill()
        assert broken(pending)


def test_a_kill_after_the_commit_and_before_the_reply(tmp_path) -> None:
    with story(tmp_path) as told:
        committed_and_not_told(told)
        # The client never saw it: its next request repeats the turn, and the first reply stays unconfirmed.
        left = told.goes_on()
        assert (left.state, left.node_seq) == ("committed", 1)
        nodes = Node.objects.filter(session_id=told.session).order_by("seq")
        assert [(node.attach_kind, node.parent_seq) for node in nodes] == [
            ("root", None),
            ("append", 0),
            ("retry", 0),
        ]


def test_a_stored_reply_is_claimed_by_its_key_after_a_kill(tmp_path) -> None:
    with story(tmp_path) as told:
        key = {"Idempotency-Key": "k"}
        committed_and_not_told(told, key)
        answer = told.other.client.chat(told.session, told.history, key)
        assert reply_of(answer)["content"] == "ok"
        assert answer.headers["x-tito-replayed"] == "true"
        assert len(told.engine.requests) == 2


@pytest.fixture
def services(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """A Postgres and a Valkey of the test's own, to be restarted for real."""
    places = places_of(tmp_path / "home")
    prepare_home(places)
    postgres, valkey = EmbeddedPostgres(places), EmbeddedValkey(places)
    running = {"postgres": postgres.start(), "valkey": valkey.start()}
    try:
        yield {"home": places.home, "postgres": postgres, "valkey": valkey, "running": running}
    finally:
        for child in running.values():
            child.stop()


def own(services: dict[str, Any], folder: Path, engine: FakeEngine) -> dict[str, str]:
    sockets = services["postgres"].places.sockets
    return {
        **environment(folder, engine),
        "TITO_HOME": str(services["home"]),
        "DATABASE_URL": f"postgresql://tito@/tito?host={sockets}",
        "REDIS_URL": f"unix://{services['valkey'].places.valkey_socket}",
        "TITO_KEY_RATE": "1000",
    }


def migrated(surroundings: dict[str, str]) -> None:
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "-v", "0"],
        cwd=ROOT,
        env={**os.environ, **surroundings},
        check=True,
    )


def restart(services: dict[str, Any], name: str) -> None:
    services["running"][name].stop()
    services["running"][name] = services[name].start()


def test_postgres_valkey_and_the_engine_are_restarted_during_turns(tmp_path, services) -> None:
    with FakeEngine() as engine:
        surroundings = own(services, tmp_path, engine)
        migrated(surroundings)
        with web_processes(2, surroundings) as (one, two), ThreadPoolExecutor(1) as pool:
            session, messages, served = one.client.create(), [user("hello")], []
            for turn, disturbed in enumerate(("postgres", "valkey", "postgres", None)):
                gate = threading.Event()
                engine.script(Reply(IDS, message=says("ab"), gate=gate))
                server = (one, two)[turn % 2]
                pending = pool.submit(server.client.chat, session, messages)
                engine.wait_seen(turn + 1)
                if disturbed:
                    restart(services, disturbed)
                gate.set()
                answer = pending.result(60)
                assert answer.headers["x-tito-node"] == str(turn)
                prompt = fed(engine, turn)
                assert prompt[: len(served)] == served
                served = [*prompt, *IDS]
                messages = [*messages, reply_of(answer), user("ok")]
            engine.script("cut")
            failed = one.client.chat(session, messages)
            assert (failed.status, failed.headers["x-tito-retryable"]) == (502, "true")
            engine.script(Reply(IDS, message=says("ab")))
            assert two.client.chat(session, messages).headers["x-tito-parent"] == "3"
            assert fed(engine, -1)[: len(served)] == served
            assert one.client.tokens(session) == two.client.tokens(session)
