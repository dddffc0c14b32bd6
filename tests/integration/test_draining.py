"""SIGTERM while replies are being streamed: who is served ends whole, or is told; who comes is told too."""

import json
import os
import signal
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from typing import Any

import pytest

from sessions_app.models import Node, Record
from tests.client import Answer, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.meanwhile import eventually
from tests.integration.test_cases import says
from tests.integration.test_processes import environment
from tests.integration.web import WebProcess, web_processes

pytestmark = pytest.mark.slow

REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("v1/chat/completions", {"messages": [user("hello")]}),
    "messages": ("v1/messages", {"messages": [user("hello")], "max_tokens": 9}),
    "responses": ("v1/responses", {"input": "hello"}),
}
ENDS = {"chat": b"data: [DONE]\n\n", "messages": b'"type":"message_stop"}\n\n', "responses": b"\n\n"}


@dataclass
class Stream:
    """A reply that is under way, at least one keep-alive of it."""

    session: str
    connection: HTTPConnection
    response: HTTPResponse

    def rest(self) -> bytes:
        """All that is still to come; raises where it is cut off."""
        try:
            return self.response.read()
        finally:
            self.connection.close()


def begun(server: WebProcess, protocol: str) -> Stream:
    session = server.client.create()
    path, body = REQUESTS[protocol]
    connection = HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.request("POST", f"/sessions/{session}/{path}", json.dumps({**body, "stream": True}))
    response = connection.getresponse()
    assert response.status == 200
    assert response.read(1)
    return Stream(session, connection, response)


def impatient(folder: Any, engine: FakeEngine, drain_s: str) -> dict[str, str]:
    return {**environment(folder, engine), "TITO_KEEPALIVE_S": "0.05", "TITO_DRAIN_S": drain_s}


def refusal(server: WebProcess) -> Answer:
    """What a request on a new connection is told once the process drains."""

    def refused() -> Answer | None:
        answer = server.client.call("POST", "/v1/chat/completions", REQUESTS["chat"][1])
        return answer if answer.code == "draining" else None

    def unready() -> bool:
        answer = server.client.call("GET", "/ready", timeout=20)
        return (answer.status, answer.json["draining"]) == (503, True)

    told: Answer = eventually(refused, 20)
    assert eventually(unready, 20)
    return told


@pytest.mark.parametrize("workers", [1, 2])
def test_streams_end_whole_and_who_comes_meanwhile_is_told_to_come_again(tmp_path, workers: int) -> None:
    with (
        FakeEngine() as engine,
        web_processes(1, impatient(tmp_path, engine, "30"), workers) as (server,),
    ):
        gate = threading.Event()
        engine.script(*[Reply([100, 2], message=says("ab"), gate=gate)] * len(REQUESTS))
        streams = {protocol: begun(server, protocol) for protocol in REQUESTS}
        os.kill(server.pid, signal.SIGTERM)
        answer = refusal(server)
        assert (answer.status, answer.code) == (503, "draining")
        assert (answer.headers["retry-after"], answer.headers["x-tito-retryable"]) == ("1", "true")
        gate.set()
        for protocol, stream in streams.items():
            text = stream.rest()
            assert b"ab" in text, protocol
            assert b"error" not in text.replace(b'"error":null', b""), protocol
            assert text.endswith(ENDS[protocol]), protocol
            assert Node.objects.filter(session_id=stream.session).count() == 1
            assert Record.objects.get(session_id=stream.session).state == "committed"
        assert server.stop() in (0, -signal.SIGTERM)


def test_at_the_limit_every_client_is_told_and_every_record_has_an_end(tmp_path) -> None:
    with (
        FakeEngine() as engine,
        web_processes(1, impatient(tmp_path, engine, "1")) as (server,),
        ThreadPoolExecutor(1) as pool,
    ):
        gate = threading.Event()
        engine.script(*[Reply([100, 2], message=says("ab"), gate=gate)] * (len(REQUESTS) + 1))
        streams = {protocol: begun(server, protocol) for protocol in REQUESTS}
        session = server.client.create()
        waits: Future[Answer] = pool.submit(server.client.chat, session, [user("hello")])
        engine.wait_seen(len(REQUESTS) + 1)
        assert server.stop() in (0, -signal.SIGTERM)
        for protocol, stream in streams.items():
            last = [line for line in stream.rest().split(b"\n") if line.startswith(b"data: {")][-1]
            told = json.loads(last.removeprefix(b"data: "))
            assert "shut down" in json.dumps(told), protocol
            assert "error" in told or told["type"] == "error", protocol
        answer = waits.result()
        assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "draining", "1")
        for each in [session, *(stream.session for stream in streams.values())]:
            record = Record.objects.get(session_id=each)
            assert (record.state, record.error_code, record.status_code) == ("cancelled", "draining", 503)
            assert not Node.objects.filter(session_id=each).exists()


def test_a_second_signal_ends_the_wait(tmp_path) -> None:
    with FakeEngine() as engine, web_processes(1, impatient(tmp_path, engine, "600")) as (server,):
        gate = threading.Event()
        engine.script(Reply([100, 2], message=says("ab"), gate=gate))
        stream = begun(server, "chat")
        os.kill(server.pid, signal.SIGTERM)
        refusal(server)
        assert server.stop() in (0, -signal.SIGTERM)
        stream.connection.close()
        gate.set()
