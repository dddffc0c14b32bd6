"""What happens in the middle of a request: an engine that waits for a gate, a client that leaves."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from tests.client import Answer, Client
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.test_bad_input import started, toy  # noqa: F401  (fixture)
from tests.integration.test_cases import says


def held(engine: FakeEngine, text: str, ids: list[int]) -> threading.Event:
    """Script a reply that waits for its event."""
    gate = threading.Event()
    engine.script(Reply(ids, message=says(text), gate=gate))
    return gate


def in_flight(pool: ThreadPoolExecutor, engine: FakeEngine, call: Callable[[], Answer]) -> "Future[Answer]":
    """Start a call and wait until the engine has it."""
    seen = len(engine.requests)
    future = pool.submit(call)
    engine.wait_seen(seen + 1)
    return future


@contextmanager
def connected_to(client: Client, session: str, *lines: str) -> Iterator[None]:
    """Send a request and leave at the end of the block."""
    parts = urlsplit(client.url)
    body = b'{"messages": [{"role": "user", "content": "hello"}]}'
    more = "".join(f"{line}\r\n" for line in lines)
    with socket.create_connection((parts.hostname, parts.port)) as connection:
        connection.sendall(
            f"POST /sessions/{session}/v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode()
            + body
        )
        yield


@contextmanager
def hanging_up(client: Client, engine: FakeEngine, session: str, *lines: str) -> Iterator[None]:
    """The same, while the engine has it."""
    seen = len(engine.requests)
    with connected_to(client, session, *lines):
        engine.wait_seen(seen + 1)
        yield


def eventually(check: Callable[[], Any], timeout_s: float = 5.0) -> Any:
    deadline = time.monotonic() + timeout_s
    while not (value := check()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
    return value
