"""The database goes away and comes back: held replies are committed, nothing is stored twice."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sessions_app.models import Node, Record
from tests.client import Client, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.test_cases import says, toy_server


def drop_connections() -> None:
    """End every other connection to this database, as a restart would."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid() "
            "AND backend_type = 'client backend'"
        )


@pytest.fixture
def toy(tmp_path: Path) -> Iterator[tuple[Client, FakeEngine]]:
    with toy_server(tmp_path) as pair:
        yield pair


def test_dropped_connections_are_replaced_before_anybody_notices(toy) -> None:
    client, engine = toy
    session = client.create()
    engine.script(*[Reply([100, 2], message=says("ab"))] * 3)
    for _ in range(3):
        drop_connections()
        assert client.chat(session, [user("hello")]).status == 200
    assert Node.objects.filter(session_id=session).count() == 3


def test_connections_dropped_during_generation_lose_no_reply(toy) -> None:
    client, engine = toy
    session = client.create()
    engine.script(Reply([100, 2], message=says("ab"), delay_s=0.5))
    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(client.chat, session, [user("hello")])
        engine.wait_seen(1)
        drop_connections()
        assert pending.result().headers["x-tito-node"] == "0"
    assert [record.state for record in Record.objects.filter(session_id=session)] == ["committed"]


def test_a_commit_in_a_storm_of_dropped_connections_applies_once(toy) -> None:
    client, engine = toy
    session = client.create()
    engine.script(*[Reply([100, 2], message=says("ab"), delay_s=0.02)] * 20)
    with ThreadPoolExecutor(8) as pool:
        pending = [pool.submit(client.chat, session, [user("ab " * n)], timeout=100) for n in range(1, 21)]
        for _ in range(30):
            drop_connections()
            time.sleep(0.03)
        answers = [one.result() for one in pending]
    assert {answer.status for answer in answers} <= {200, 503}
    seqs = sorted(int(answer.headers["x-tito-node"]) for answer in answers if answer.status == 200)
    nodes = list(Node.objects.filter(session_id=session).order_by("seq").values_list("seq", flat=True))
    assert nodes == list(range(len(nodes)))
    assert len(seqs) == len(set(seqs))
    assert set(seqs) <= set(nodes)
