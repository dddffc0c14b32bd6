"""Samples of a long session are quick, and no chat turn waits for them."""

import statistics
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from tests.client import Client, reply_of, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.test_cases import says, toy_server

_TURNS, _TOKENS = 50, 1000


@pytest.fixture(scope="module")
def long_session(
    tmp_path_factory, django_db_setup, django_db_blocker
) -> Iterator[tuple[Client, FakeEngine, str]]:
    with django_db_blocker.unblock(), toy_server(tmp_path_factory.mktemp("toy")) as (client, engine):
        yield client, engine, grown(client, engine)


def grown(client: Client, engine: FakeEngine) -> str:
    """A session of 50 turns and a good 50,000 ids whose text is what its ids spell."""
    rng = np.random.default_rng(7)
    session, messages = client.create(), [user("hello")]
    for _ in range(_TURNS):
        text = "".join(map(chr, rng.integers(0x61, 0x7B, _TOKENS)))
        engine.script(Reply([1000 + ord(one) for one in text] + [2], message=says(text)))
        messages = [*messages, reply_of(client.chat(session, messages)), user("ok")]
    return session


def collect(client: Client, session: str) -> None:
    answer = client.call("POST", f"/sessions/{session}/samples", {})
    assert answer.status == 200
    assert len(answer.body) > 8 * _TURNS * _TOKENS


def test_fifty_thousand_tokens_take_a_tenth_of_a_second(long_session) -> None:
    """Processor time of the whole server and of the client: other processes do not count."""
    client, _, session = long_session
    times = []
    for _ in range(3):
        started = time.process_time()
        collect(client, session)
        times.append(time.process_time() - started)
    assert times[0] < 0.1, "nothing is cached yet: drift is rendered"
    assert min(times) < 0.04


def test_turns_go_on_while_samples_are_assembled(long_session) -> None:
    client, engine, session = long_session
    done = threading.Event()

    def collect_on() -> None:
        while not done.is_set():
            collect(client, session)

    threads = [threading.Thread(target=collect_on) for _ in range(4)]
    for thread in threads:
        thread.start()
    other, latencies = client.create(), []
    try:
        for _ in range(30):
            engine.script(Reply([102, 2], message=says("ok")))
            started = time.perf_counter()
            assert client.chat(other, [user("hello")]).status == 200
            latencies.append(time.perf_counter() - started)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert statistics.median(latencies) < 0.15, "a client and four readers share this process's lock"
