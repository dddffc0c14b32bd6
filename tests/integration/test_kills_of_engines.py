"""The engine, a real process, is killed while it generates; what killed web processes left is settled."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest
from django.conf import settings

from sessions_app.models import Node, Record
from sessions_app.tasks import recover
from tests.client import reply_of, user
from tests.harness import forget_stored_profile
from tests.integration.meanwhile import eventually
from tests.integration.test_kills import broken
from tests.integration.web import ROOT, database_url, free_port, web_processes

pytestmark = pytest.mark.slow


class Engine:
    """`manage.py demo_engine` on one port, over and over."""

    def __init__(self) -> None:
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, latency_ms: int = 0) -> None:
        command = [sys.executable, "manage.py", "demo_engine", "--port", str(self.port)]
        self._process = subprocess.Popen(
            [*command, "--latency-ms", str(latency_ms)],
            cwd=ROOT,
            env={**os.environ, "TITO_HOME": str(settings.TITO.home)},
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        assert b"demo engine at" in self._process.stdout.readline()

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.communicate(timeout=10)
            self._process = None


@contextmanager
def demo_engine() -> Iterator[tuple[Engine, dict[str, str]]]:
    """The engine, and what points a web process at it."""
    forget_stored_profile()
    engine = Engine()
    engine.start()
    try:
        yield engine, {"TITO_BACKEND": "demo", "TITO_BACKEND_URL": f"http://127.0.0.1:{engine.port}"}
    finally:
        engine.kill()


def is_intent(session: str, number: int) -> bool:
    records = Record.objects.filter(session_id=session).order_by("id")
    return [record.state for record in records][number:] == ["intent"]


def test_an_engine_killed_mid_generation_costs_that_turn_and_no_other() -> None:
    with demo_engine() as (engine, surroundings), web_processes(2, surroundings) as (one, two):
        session = one.client.create()
        first = reply_of(one.client.chat(session, [user("hello")]))
        served, history = one.client.tokens(session), [user("hello"), first, user("and now?")]
        engine.kill()
        engine.start(latency_ms=20_000)
        with ThreadPoolExecutor(1) as pool:
            pending = pool.submit(one.client.chat, session, history)
            eventually(lambda: is_intent(session, 1))
            time.sleep(1)  # the request is with the engine by now
            engine.kill()
            failed = pending.result(30)
        assert (failed.status, failed.headers["x-tito-retryable"]) == (502, "true")
        away = two.client.chat(session, history)
        assert (away.status, away.headers["x-tito-error-code"]) == (502, "upstream_unreachable")
        assert one.client.tokens(session) == served, "no half turn"
        engine.start()
        answer = two.client.chat(session, history)
        assert answer.headers["x-tito-parent"] == "0"
        assert two.client.tokens(session)[: len(served)] == served
        assert Node.objects.filter(session_id=session).count() == 2
        states = Record.objects.filter(session_id=session).order_by("id").values_list("state", flat=True)
        assert list(states) == ["confirmed", "upstream_error", "upstream_error", "committed"]


def dangling(engine: Engine, surroundings: dict[str, str]) -> Record:
    """What a web process killed in the middle of a turn leaves."""
    engine.kill()
    engine.start(latency_ms=20_000)
    with web_processes(1, surroundings) as (victim,), ThreadPoolExecutor(1) as pool:
        session = victim.client.create()
        pending = pool.submit(victim.client.chat, session, [user("hello")])
        eventually(lambda: is_intent(session, 0))
        victim.kill()
        assert broken(pending)
    return Record.objects.get(session_id=session)


def age(record: Record) -> None:
    """An intent older than any engine may take."""
    with psycopg.connect(database_url(), autocommit=True) as db:
        db.execute(
            "UPDATE sessions_app_record SET state = 'intent', arrived_at = now() - make_interval(secs => %s) "
            "WHERE session_id = %s",
            (settings.TITO.engine_timeout + 61, record.session_id),
        )


def test_a_dangling_intent_is_settled_at_the_next_start_and_periodically_once_it_is_old() -> None:
    with demo_engine() as (engine, surroundings):
        surroundings = {**surroundings, "TITO_LEASE_S": "3600"}  # age alone tells
        record = dangling(engine, surroundings)
        with web_processes(1, surroundings):
            record.refresh_from_db()
            assert record.state == "intent", "another process may still be at it"
        age(record)
        with web_processes(1, surroundings):
            record.refresh_from_db()
            assert (record.state, record.error_code) == ("lost", "lost")
    age(record)
    assert settings.CELERY_BEAT_SCHEDULE["recover"]["task"] == "sessions_app.recover"
    recover()
    record.refresh_from_db()
    assert record.state == "lost"
