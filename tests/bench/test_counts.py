"""What a turn costs as far as it is a count: statements, tokens, bytes, threads, connections."""

import asyncio
import random
import string
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import aiohttp
import psycopg
import pytest
from django.db import connection

from sessions_app.api import runtime
from sessions_app.api.wiring import conninfo
from sessions_app.rendering.chat_template import ChatTemplate
from sessions_app.rendering.protocol import Ids
from sessions_app.rendering.tokenizer import ChatTokenizer
from tests.client import Client, reply_of, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.test_cases import says, toy_server

pytestmark = pytest.mark.django_db

_IN_FLIGHT = 100
_TURN_TABLES = ("node", "message", "tokencheckpoint", "record")


@pytest.fixture(scope="module")
def toy(
    tmp_path_factory: pytest.TempPathFactory, django_db_setup: None, django_db_blocker: Any
) -> Iterator[tuple[Client, FakeEngine]]:
    with django_db_blocker.unblock(), toy_server(tmp_path_factory.mktemp("toy")) as pair:
        yield pair


class Agent:
    """One session whose turns are all alike: the same message, the same reply."""

    def __init__(self, client: Client, engine: FakeEngine, **options: Any) -> None:
        self._client, self._engine = client, engine
        self.session = client.create(**options)
        self._messages: list[Any] = []

    def turn(self, text: str = "hello ok") -> None:
        self._engine.script(Reply([102, 102, 2], message=says("okok")))
        self._messages.append(user(text))
        self._messages.append(reply_of(self._client.chat(self.session, self._messages)))

    def turns(self, count: int) -> None:
        for _ in range(count):
            self.turn()

    def statements(self) -> int:
        """Of one more turn."""
        before = runtime.current().db.statements
        self.turn()
        return runtime.current().db.statements - before


def test_an_append_takes_three_statements_whatever_the_history(toy: tuple[Client, FakeEngine]) -> None:
    agent = Agent(*toy)
    agent.turn()
    early = [agent.statements() for _ in range(3)]
    agent.turns(60)
    assert [*early, agent.statements(), agent.statements()] == [3] * 5


@pytest.mark.parametrize("policy", ["tree", "linear", "rollback"])
def test_every_policy_appends_with_at_most_four_statements(
    toy: tuple[Client, FakeEngine], policy: str
) -> None:
    agent = Agent(*toy, history_policy=policy)
    agent.turns(20)
    assert agent.statements() <= 4


def test_a_process_that_does_not_know_the_session_needs_two_statements_more(
    toy: tuple[Client, FakeEngine],
) -> None:
    agent = Agent(*toy)
    agent.turns(20)
    turns = runtime.current().turns
    turns.cache._arrays.clear()
    turns.forget(UUID(agent.session))
    assert agent.statements() == 5
    assert agent.statements() == 3


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Messages given to templates, and characters given to tokenizers."""
    counted: Counter[str] = Counter()
    render, encode = ChatTemplate.render, ChatTokenizer.encode

    def counting_render(self: ChatTemplate, messages: Any, *args: Any, **kwargs: Any) -> str:
        counted.update(messages=len(messages))
        return render(self, messages, *args, **kwargs)

    def counting_encode(self: ChatTokenizer, text: str) -> Ids:
        counted.update(characters=len(text))
        return encode(self, text)

    monkeypatch.setattr(ChatTemplate, "render", counting_render)
    monkeypatch.setattr(ChatTokenizer, "encode", counting_encode)
    return counted


def test_what_is_rendered_and_tokenised_is_new(toy: tuple[Client, FakeEngine], work: Counter[str]) -> None:
    agent = Agent(*toy)
    agent.turns(3)
    costs = []
    for more in (0, 60):
        agent.turns(more)
        work.clear()
        agent.turn()
        costs.append(dict(work))
    assert costs[0] == costs[1]
    assert costs[0]["characters"] < 200


def test_tokenising_grows_with_the_new_message(toy: tuple[Client, FakeEngine], work: Counter[str]) -> None:
    agent = Agent(*toy)
    agent.turns(3)
    costs = []
    for size in (1_000, 3_000):
        work.clear()
        agent.turn("x" * size)
        costs.append(work["characters"])
    assert 2_000 <= costs[1] - costs[0] <= 2 * 2_000


def bytes_of(session: str, first: int, last: int) -> int:
    """Bytes of the rows of some turns."""
    total = 0
    with connection.cursor() as cursor:
        for table in _TURN_TABLES:
            seq = "seq" if table == "node" else "node_seq"
            cursor.execute(
                f"SELECT sum(pg_column_size(t.*)) FROM sessions_app_{table} t "
                f"WHERE session_id = %s AND {seq} BETWEEN %s AND %s",
                [session, first, last],
            )
            total += cursor.fetchone()[0]
    return total


def test_bytes_stored_follow_the_delta_and_not_the_history(toy: tuple[Client, FakeEngine]) -> None:
    agent = Agent(*toy)
    agent.turns(101)
    early, late = bytes_of(agent.session, 5, 24), bytes_of(agent.session, 80, 99)
    assert abs(late - early) <= 0.02 * early
    assert early / 20 < 2_500


def test_bytes_stored_grow_with_what_is_new(toy: tuple[Client, FakeEngine]) -> None:
    agent = Agent(*toy)
    agent.turns(3)
    agent.turn("".join(random.Random(7).choices(string.ascii_letters, k=20_000)))
    agent.turn()
    usual, long, after = (bytes_of(agent.session, seq, seq) for seq in (2, 3, 4))
    assert 20_000 < long - usual < 6 * 20_000
    assert abs(after - usual) < 100


def test_a_hundred_turns_in_flight_take_no_threads_and_few_connections(
    toy: tuple[Client, FakeEngine],
) -> None:
    client, engine = toy
    sessions = [client.create() for _ in range(_IN_FLIGHT)]
    threads, pooled = set(threading.enumerate()), connections()
    gate, arrived = threading.Event(), len(engine.requests)
    engine.script(*[Reply([102, 2], message=says("ok"), gate=gate) for _ in sessions])

    async def all_of_them() -> tuple[list[str], int]:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(client.url, connector=connector) as http:
            work = asyncio.gather(*(chat(http, session) for session in sessions))
            try:
                await engine.seen(arrived + _IN_FLIGHT, timeout_s=30)
                more = [thread.name for thread in threading.enumerate() if thread not in threads]
                return more, connections()
            finally:
                gate.set()
                statuses.extend(await work)

    statuses: list[int] = []
    more, held = asyncio.run(all_of_them())
    assert statuses == [200] * _IN_FLIGHT
    assert len(more) <= 2, more
    assert held - pooled < runtime.current().configuration.db_pool


async def chat(http: aiohttp.ClientSession, session: str) -> int:
    body = {"messages": [user("hello")]}
    async with http.post(f"/sessions/{session}/v1/chat/completions", json=body) as reply:
        await reply.read()
        return reply.status


def connections() -> int:
    """Those of the hot path; other servers of this run may hold some."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tito' AND state IS NOT NULL"
    with psycopg.connect(conninfo(), application_name="tests") as asked:
        row = asked.execute(query).fetchone()
    assert row is not None
    return int(row[0])
