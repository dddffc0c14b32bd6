"""More than a process can do, and clients that do not do their part."""

import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import cycle
from urllib.parse import urlsplit

import pytest

from sessions_app.models import Node, Record
from tests.client import Client, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.meanwhile import eventually, held, in_flight
from tests.integration.test_cases import says, toy_server, tree
from tests.integration.test_kills import locked_session, somebody_waits

PATIENCE_S = 0.4


@pytest.fixture
def pool():
    with ThreadPoolExecutor(16) as executor:
        yield executor


def test_a_full_process_refuses_before_any_work(tmp_path, pool) -> None:
    with toy_server(tmp_path, TITO_MAX_IN_FLIGHT="1") as (client, engine):
        session, other = client.create(), client.create()
        gate = held(engine, "ab", [100, 2])
        first = in_flight(pool, engine, lambda: client.chat(session, [user("hello")]))
        answer = client.chat(other, [user("hello")])
        assert (answer.status, answer.code) == (429, "overloaded")
        assert answer.headers["retry-after"] == "1"
        assert answer.headers["x-tito-retryable"] == "true"
        path = f"/sessions/{other}/v1/chat/completions"
        assert client.call("POST", path, b"{no JSON, and not even read").code == "overloaded"
        gate.set()
        assert first.result().status == 200
        assert len(engine.requests) == 1
        assert refusals(other) == [("refused", "overloaded", 429)] * 2
        assert tree(client, other)["nodes"] == []
        engine.script(Reply([100, 2], message=says("ab")))
        assert client.chat(other, [user("hello")]).status == 200


def test_one_session_cannot_take_the_places_of_the_others(tmp_path, pool) -> None:
    with toy_server(tmp_path, TITO_MAX_IN_FLIGHT="8", TITO_MAX_IN_FLIGHT_PER_SESSION="3") as (client, engine):
        greedy, modest = client.create(), client.create()
        gates = [held(engine, "ab", [100, 2]) for _ in range(3)]
        calls = [
            in_flight(pool, engine, lambda n=n: client.chat(greedy, [user("ab " * n)])) for n in range(1, 4)
        ]
        refused = list(pool.map(lambda n: client.chat(greedy, [user("x" * n)]), range(1, 21)))
        assert {answer.code for answer in refused} == {"overloaded"}
        assert {answer.headers["retry-after"] for answer in refused} == {"1"}
        assert refusals(greedy) == [("refused", "overloaded", 429)] * 20
        engine.script(Reply([102, 2], message=says("ok")))
        assert client.chat(modest, [user("hello")]).status == 200
        for gate in gates:
            gate.set()
        assert {call.result().status for call in calls} == {200}
        engine.script(Reply([102, 2], message=says("ok")))
        assert client.chat(greedy, [user("x")]).status == 200


def test_replies_of_one_session_that_wait_to_be_stored_leave_connections_to_the_others(
    tmp_path, pool
) -> None:
    with toy_server(tmp_path, TITO_DB_POOL="4") as (client, engine):
        greedy, modest = client.create(), client.create()
        gates = [held(engine, "ab", [100, 2]) for _ in range(8)]
        calls = [
            in_flight(pool, engine, lambda n=n: client.chat(greedy, [user("ab " * n)])) for n in range(1, 9)
        ]
        with locked_session(greedy, "FOR NO KEY UPDATE"):
            for gate in gates:
                gate.set()
            eventually(somebody_waits)
            engine.script(Reply([102, 2], message=says("ok")))
            assert client.chat(modest, [user("hello")], timeout=10).status == 200
        assert {call.result().status for call in calls} == {200}
        assert len(tree(client, greedy)["nodes"]) == 8


def test_refusals_of_one_session_that_wait_to_be_recorded_leave_connections_to_the_others(
    tmp_path, pool
) -> None:
    with toy_server(tmp_path, TITO_DB_POOL="4", TITO_MAX_IN_FLIGHT_PER_SESSION="1") as (client, engine):
        greedy, modest = client.create(), client.create()
        gate = held(engine, "ab", [100, 2])
        first = in_flight(pool, engine, lambda: client.chat(greedy, [user("hello")]))
        with locked_session(greedy):
            refused = [pool.submit(client.chat, greedy, [user("x" * n)]) for n in range(1, 9)]
            eventually(somebody_waits)
            engine.script(Reply([102, 2], message=says("ok")))
            assert client.chat(modest, [user("hello")], timeout=10).status == 200
        assert {call.result().code for call in refused} == {"overloaded"}
        assert refusals(greedy) == [("refused", "overloaded", 429)] * 8
        gate.set()
        assert first.result().status == 200


def refusals(session: str) -> list[tuple[str, str, int]]:
    """How the requests ended that became no node."""
    records = Record.objects.filter(session_id=session, state="refused")
    return list(records.values_list("state", "error_code", "status_code"))


@contextmanager
def connected(client: Client) -> Iterator[socket.socket]:
    parts = urlsplit(client.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as connection:
        yield connection


def all_of(connection: socket.socket) -> bytes:
    """What comes until the server hangs up."""
    received = b""
    while chunk := connection.recv(65536):
        received += chunk
    return received


def sent(connection: socket.socket, data: bytes) -> bool:
    """Whether the other side still takes anything."""
    try:
        connection.sendall(data)
    except OSError:
        return False
    return True


@pytest.fixture(scope="module")
def impatient(django_db_setup, django_db_blocker, tmp_path_factory) -> Iterator[tuple[Client, FakeEngine]]:
    folder = tmp_path_factory.mktemp("impatient")
    with django_db_blocker.unblock(), toy_server(folder, TITO_READ_TIMEOUT_S=str(PATIENCE_S)) as pair:
        yield pair


BEGUN = {
    "nothing": b"",
    "half a header": b"POST /sessions HTTP/1.1\r\nHost: localh",
    "half a body": b"POST /sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
}


@pytest.mark.parametrize("begun", BEGUN.values(), ids=list(BEGUN))
def test_a_request_that_does_not_arrive_is_hung_up_on(impatient, begun: bytes) -> None:
    client, _ = impatient
    with connected(client) as connection:
        connection.sendall(begun)
        started = time.monotonic()
        answer = all_of(connection)
        assert time.monotonic() - started < PATIENCE_S + 3
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert answer.endswith(b"}")


def test_a_crowd_of_them_holds_up_nobody_and_is_hung_up_on(impatient) -> None:
    client, engine = impatient
    with ExitStack() as crowd:
        half_open = [crowd.enter_context(connected(client)) for _ in range(300)]
        for connection, begun in zip(half_open, cycle(BEGUN.values())):
            connection.sendall(begun)
        engine.script(Reply([100, 2], message=says("ab")))
        assert client.chat(client.create(), [user("hello")]).status == 200
        answers = [all_of(connection) for connection in half_open]
    assert {answer.partition(b"\r\n")[0] for answer in answers} == {b"HTTP/1.1 408 Request Timeout"}


def test_a_body_that_trickles_in_is_not_waited_for(impatient) -> None:
    client, engine = impatient
    session, seen = client.create(), len(engine.requests)
    with connected(client) as connection:
        connection.sendall(
            f"POST /sessions/{session}/v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
            "Content-Length: 100000\r\n\r\n".encode()
        )
        started = time.monotonic()
        while time.monotonic() < started + PATIENCE_S + 5 and sent(connection, b" "):
            time.sleep(0.05)
    assert time.monotonic() - started < PATIENCE_S + 3
    assert len(engine.requests) == seen


@pytest.mark.parametrize("piece", [b"a: b\r\n" * 10_000, b"a" * 60_000], ids=["lines", "one line"])
def test_a_head_without_end_is_not_kept(impatient, piece: bytes) -> None:
    client, _ = impatient
    with connected(client) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nx: ")
        pieces = 0
        while pieces < 200 and sent(connection, piece):
            pieces += 1
            time.sleep(0.001)  # a piece each: what arrives at once is read at once
    assert pieces < 100


def test_a_head_of_ordinary_size_is_read(impatient) -> None:
    client, _ = impatient
    assert client.call("GET", "/health", headers={"x": "a" * 30_000}).status == 200


def test_a_generation_may_take_longer_than_a_request_may(impatient) -> None:
    client, engine = impatient
    engine.script(Reply([100, 2], message=says("ab"), delay_s=PATIENCE_S * 3))
    assert client.chat(client.create(), [user("hello")]).status == 200


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_client_that_reads_nothing_is_dropped(impatient, stream: bool) -> None:
    client, engine = impatient
    session = client.create()
    engine.script(Reply([1097, 2], message=says("a" * 16_000_000)))
    body = json.dumps({"messages": [user("hello")], "stream": stream})
    with connected(client) as connection:
        connection.sendall(
            f"POST /sessions/{session}/v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        eventually(lambda: Node.objects.filter(session_id=session).exists())
        time.sleep(PATIENCE_S + 1.5)
        try:
            received = len(all_of(connection))
        except ConnectionResetError:
            received = 0
    assert received < 16_000_000
    assert client.call("GET", "/health").status == 200


def test_a_connection_that_is_kept_by_empty_lines_is_hung_up_on(impatient) -> None:
    client, _ = impatient
    with connected(client) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        connection.sendall(b"\r\n")
        all_of(connection)  # fails where nothing comes in its 10 s
