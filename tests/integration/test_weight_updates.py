"""Pause, update, tell the version, resume: held turns are answered after, and say which weights they met."""

import time
from concurrent.futures import ThreadPoolExecutor

from sessions_app.models import Node
from tests.client import user
from tests.fakes.engine import Reply
from tests.integration.test_cases import says, toy_server


def test_a_paused_profile_holds_new_turns_and_answers_them_after(tmp_path) -> None:
    with toy_server(tmp_path) as (client, engine), ThreadPoolExecutor(4) as pool:
        session = client.create()
        assert client.call("POST", "/admin-api/weights", {"weight_version": "v1"}).status == 200
        engine.script(Reply([100, 2], message=says("ab")))
        client.chat(session, [user("hello")])
        assert client.call("POST", "/admin-api/pause", {}).status == 200
        engine.script(Reply([102, 2], message=says("ok"), weight_version="8"))
        pending = pool.submit(client.chat, session, [user("hello"), says("ab"), user("ok")])
        time.sleep(0.5)
        assert len(engine.requests) == 1
        client.call("POST", "/admin-api/weights", {"weight_version": "v2"})
        client.call("POST", "/admin-api/resume", {})
        assert pending.result().status == 200
        versions = Node.objects.filter(session_id=session).order_by("seq")
        assert [node.weight_version_dispatch for node in versions] == ["v1", "v2"]
        assert [node.weight_version for node in versions] == ["7", "8"]


def test_a_pause_that_lasts_too_long_is_told(tmp_path) -> None:
    with toy_server(tmp_path, TITO_ENGINE_TIMEOUT="0.5") as (client, engine):
        session = client.create()
        client.call("POST", "/admin-api/pause", {})
        answer = client.chat(session, [user("hello")])
        client.call("POST", "/admin-api/resume", {})
        assert (answer.status, answer.code, answer.headers["x-tito-retryable"]) == (503, "paused", "true")
        assert engine.requests == []
        assert client.call("POST", "/admin-api/pause", {"profile": "nobody"}).status == 404
        assert client.call("POST", "/admin-api/weights", {}).status == 400
