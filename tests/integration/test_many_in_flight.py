"""Five hundred generations in flight on one web process: bounded memory, threads and connections, none
failed. The engine holds them until all have arrived; on request (`pytest -m soak`) each takes five
seconds."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import aiohttp
import psutil
import pytest

from sessions_app.models import Node
from tests.client import user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.test_cases import says
from tests.integration.test_processes import environment
from tests.integration.web import WebProcess
from tito_project import open_files

pytestmark = pytest.mark.slow

COUNT = 500
POOL = 4
USUAL_LIMIT = 256
"""Open files of a process in macOS's shells (1024 in Linux's): fewer than the sockets of 500 generations."""
MEMORY_EACH = 200_000


@dataclass(frozen=True)
class Held:
    """What the process holds."""

    threads: int
    database: int
    """Connections to Postgres and Valkey, and what the process talks to itself by."""
    sockets: int
    """Of clients and engines."""
    memory: int


def held(web: WebProcess, engine: FakeEngine) -> Held:
    process = psutil.Process(web.pid)
    ports = {web.port, int(engine.url.rpartition(":")[2])}
    established = [each for each in process.net_connections("inet") if each.status == psutil.CONN_ESTABLISHED]
    ours = [each for each in established if ports & {each.laddr.port, each.raddr.port}]
    others = len(established) - len(ours) + len(process.net_connections("unix"))
    return Held(process.num_threads(), others, len(ours), process.memory_info().rss)


@pytest.fixture
def served(tmp_path) -> Iterator[tuple[WebProcess, FakeEngine]]:
    open_files.raise_limit()
    with FakeEngine() as engine:
        settings = {"TITO_DB_POOL": str(POOL)}
        web = WebProcess(environment(tmp_path, engine) | settings, open_files=USUAL_LIMIT)
        try:
            web.wait_ready()
            yield web, engine
        finally:
            web.stop()


def test_500_generations_wait_at_the_price_of_two_sockets_each(served):
    web, engine = served
    gate = threading.Event()
    before, during = load(web, engine, Reply([102, 2], message=says("ok"), gate=gate), gate)
    assert during.sockets == 2 * COUNT
    assert during.threads - before.threads <= 2
    assert during.database - before.database <= POOL + 2
    assert during.memory - before.memory < COUNT * MEMORY_EACH


@pytest.mark.soak
@pytest.mark.skipif("'soak' not in config.option.markexpr", reason="long: pytest -m soak")
def test_500_generations_of_five_seconds_over_and_over(served):
    web, engine = served
    peaks = []
    for _ in range(5):
        _, during = load(web, engine, Reply([102, 2], message=says("ok"), delay_s=5.0))
        peaks.append(during)
    assert max(each.threads for each in peaks) - peaks[0].threads <= 2
    assert peaks[-1].memory - peaks[0].memory < COUNT * MEMORY_EACH


def load(
    web: WebProcess, engine: FakeEngine, reply: Reply, gate: threading.Event | None = None
) -> tuple[Held, Held]:
    """One turn of each of so many sessions, all at once; what was held before, and with all in flight."""
    sessions = [web.client.create() for _ in range(COUNT)]
    web.client.chat(sessions[0], [user("warm up")])
    before, arrived = held(web, engine), len(engine.requests)
    engine.script(*[reply] * COUNT)
    during = asyncio.run(all_at_once(web, engine, sessions, arrived + COUNT, gate))
    assert len(engine.requests) == arrived + COUNT
    assert Node.objects.filter(session_id__in=sessions).count() == COUNT + 1
    return before, during


async def all_at_once(
    web: WebProcess, engine: FakeEngine, sessions: list[str], arrived: int, gate: threading.Event | None
) -> Held:
    connector, timeout = aiohttp.TCPConnector(limit=0), aiohttp.ClientTimeout(300)
    async with aiohttp.ClientSession(web.client.url, connector=connector, timeout=timeout) as http:
        work = asyncio.gather(*(chat(http, session) for session in sessions))
        try:
            await engine.seen(arrived, timeout_s=120)
            return held(web, engine)
        finally:
            if gate is not None:
                gate.set()
            assert {status for status, _ in await work} == {200}


async def chat(http: aiohttp.ClientSession, session: str) -> tuple[int, bytes]:
    body = {"messages": [user("hello")]}
    async with http.post(f"/sessions/{session}/v1/chat/completions", json=body) as reply:
        return reply.status, await reply.read()
