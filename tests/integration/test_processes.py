"""Nothing lives only in a process: any other one goes on with the same ids, also after a kill."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path

import pytest
from django.core.management import call_command

from sessions_app.models import Node, Record
from tests.client import reply_of, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.test_cases import fed, says
from tests.integration.web import web_processes
from tests.toy import write_model, write_template

pytestmark = pytest.mark.slow


def environment(folder: Path, engine: FakeEngine) -> dict[str, str]:
    return {
        "TITO_MODEL": str(write_model(folder / "model")),
        "TITO_CHAT_TEMPLATE": str(write_template(folder, "toy-chatml")),
        "TITO_RENDERER": "template",
        "TITO_BACKEND": "sglang",
        "TITO_BACKEND_URL": engine.url,
    }


def test_two_processes_serve_one_session_turn_by_turn(tmp_path) -> None:
    with FakeEngine() as engine, web_processes(2, environment(tmp_path, engine)) as processes:
        session = processes[0].client.create()
        messages, served = [user("hello")], []
        for turn in range(6):
            engine.script(Reply([1097, 1098, 2], message=says("ab")))
            answer = processes[turn % 2].client.chat(session, messages)
            prompt = fed(engine, -1)
            assert prompt[: len(served)] == served
            served = [*prompt, 1097, 1098, 2]
            messages = [*messages, reply_of(answer), user("ok")]
        assert processes[0].client.tokens(session) == processes[1].client.tokens(session) == served


def test_a_kill_between_turns_and_during_generation_loses_no_acknowledged_turn(tmp_path) -> None:
    with FakeEngine() as engine, web_processes(2, environment(tmp_path, engine)) as (victim, other):
        session = victim.client.create()
        engine.script(Reply([1097, 1098, 2], message=says("ab")))
        first = reply_of(victim.client.chat(session, [user("hello")]))
        served = [*fed(engine, 0), 1097, 1098, 2]
        history = [user("hello"), first, user("ok")]
        gate = threading.Event()
        engine.script(Reply([102, 2], message=says("ok"), gate=gate))
        with ThreadPoolExecutor(1) as pool:
            pending = pool.submit(victim.client.chat, session, history)
            engine.wait_seen(2)
            victim.kill()
            gate.set()
            assert isinstance(pending.exception(), OSError | HTTPException)
        assert Record.objects.get(session_id=session, state="intent").node_seq is None
        engine.script(Reply([1111, 2], message=says("o")))
        answer = other.client.chat(session, history)
        assert answer.headers["x-tito-node"] == "1"
        assert fed(engine, 2)[: len(served)] == served
        assert Node.objects.filter(session_id=session).count() == 2
        time.sleep(0.05)
        call_command("recover", "--older-than-s", "0")
        lost = Record.objects.get(session_id=session, state="lost")
        assert lost.error_code == "lost"


def test_a_terminated_process_lets_its_turns_end(tmp_path) -> None:
    with FakeEngine() as engine, web_processes(1, environment(tmp_path, engine)) as (server,):
        session = server.client.create()
        engine.script(Reply([100, 2], message=says("ab"), delay_s=1.0))
        with ThreadPoolExecutor(1) as pool:
            pending = pool.submit(server.client.chat, session, [user("hello")])
            engine.wait_seen(1)
            assert server.stop() in (0, -15)
            assert pending.result().status == 200
        assert Node.objects.filter(session_id=session).count() == 1


def test_draining_ends_at_its_limit_and_the_turn_that_was_not_done_has_an_end(tmp_path) -> None:
    with FakeEngine() as engine:
        surroundings = {**environment(tmp_path, engine), "TITO_DRAIN_S": "1"}
        with web_processes(1, surroundings) as (server,), ThreadPoolExecutor(1) as pool:
            session, gate = server.client.create(), threading.Event()
            engine.script(Reply([100, 2], message=says("ab"), gate=gate))
            pending = pool.submit(server.client.chat, session, [user("hello")])
            engine.wait_seen(1)
            server.stop()  # fails where it waits for the engine, which may take ten minutes
            gate.set()
            pending.exception(30)
        call_command("recover", "--older-than-s", "0")
        record = Record.objects.get(session_id=session)
        assert record.state in ("cancelled", "lost", "upstream_error")  # as its engine's connection ended
        assert not Node.objects.filter(session_id=session).exists()
