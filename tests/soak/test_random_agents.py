"""Random agents against random faults: `SOAK_SECONDS=3600 pytest -m soak tests/soak`.

Agents extend, send again and branch under every policy and claim lost replies by their keys; processes are
killed and replaced, connections of the database are cut, the engine fails. At the end: every acknowledged
reply is a node with exactly its ids, every path is fed as it was served, every request has an end, and what
an export would train was sampled in that very context, once.
"""

import logging
import os
import random
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from sessions_app.models import Node, Record, TokenCheckpoint
from tests.client import Answer, user
from tests.exports.exporting import export
from tests.fakes.engine import FakeEngine
from tests.integration.test_database_restart import drop_connections
from tests.integration.test_processes import environment
from tests.integration.web import WebProcess

logger = logging.getLogger(__name__)
pytestmark = [pytest.mark.soak, pytest.mark.django_db]

SECONDS = float(os.environ.get("SOAK_SECONDS", "60"))
SEED = int(os.environ.get("SOAK_SEED", "1"))
POLICIES = ("tree", "tree", "linear", "rollback")
FAULTS = ("500", "cut", "malformed_json", "nan_logprob")
_COMPARED = 500
"""Paths whose ids are compared with those of their parents."""
_EXPORTED = 300
"""Sessions that are exported."""
ENDS = {"committed", "confirmed", "refused", "upstream_error", "late", "lost", "cancelled", "replayed"}


@dataclass
class Acknowledged:
    """A reply that an agent has in its hands."""

    session: str
    node: int
    messages: list[Any]
    """The history up to it, and itself."""


@dataclass
class World:
    """What agents and faults share."""

    engine: FakeEngine
    surroundings: dict[str, str]
    servers: list[WebProcess]
    until: float
    replies: list[Acknowledged] = field(default_factory=list)
    kills: int = 0
    failures: int = 0


def agent(world: World, number: int) -> None:
    """Conversations until the time is over."""
    chance = random.Random(SEED * 1000 + number)
    while time.monotonic() < world.until:
        try:
            session = chance.choice(world.servers).client.create(history_policy=chance.choice(POLICIES))
        except (OSError, HTTPException, AssertionError):
            time.sleep(0.1)
            continue
        conversation(world, chance, session)


def conversation(world: World, chance: random.Random, session: str) -> None:
    histories: list[list[Any]] = [[]]
    for turn in range(chance.randrange(1, 12)):
        if time.monotonic() > world.until:
            return
        history = histories[-1] if chance.random() < 0.8 else chance.choice(histories)
        asked = [*history, user(f"ab {turn if chance.random() < 0.9 else 0}")]
        key = {"Idempotency-Key": f"k{turn}"} if chance.random() < 0.2 else {}
        answer = answered(world, chance, session, asked, key)
        if answer is None or answer.status != 200:
            world.failures += 1
            assert answer is None or answer.status in (400, 409, 429, 500, 502, 503), answer.body
            continue
        if answer.headers["x-tito-recorded"] == "true":
            told = [*asked, answer.json["choices"][0]["message"]]
            histories.append(told)
            world.replies.append(Acknowledged(session, int(answer.headers["x-tito-node"]), told))


def answered(
    world: World, chance: random.Random, session: str, asked: list[Any], key: dict[str, str]
) -> Answer | None:
    """The answer; with a key it is asked for again, of whichever process, where the first was lost."""
    for _ in range(4 if key else 1):
        try:
            return chance.choice(world.servers).client.chat(session, asked, headers=key, timeout=90)
        except (OSError, HTTPException):
            time.sleep(0.2)
    return None


def trouble(world: World) -> None:
    """One fault after the other."""
    chance = random.Random(SEED)
    while time.monotonic() < world.until:
        time.sleep(chance.uniform(0.5, 3.0))
        kind = chance.randrange(3)
        if kind == 0:
            world.engine.script(chance.choice(FAULTS))
        elif kind == 1:
            drop_connections()
        else:
            replace_one(world, chance)


def replace_one(world: World, chance: random.Random) -> None:
    place = chance.randrange(len(world.servers))
    world.servers[place].kill()
    world.kills += 1
    fresh = WebProcess(world.surroundings)
    fresh.wait_ready()
    world.servers[place] = fresh


def test_nothing_acknowledged_is_lost_and_nothing_is_half_there(tmp_path) -> None:
    with FakeEngine() as engine:
        surroundings = environment(tmp_path, engine)
        servers = [WebProcess(surroundings) for _ in range(2)]
        world = World(engine, surroundings, servers, 0.0)
        try:
            for server in servers:
                server.wait_ready()
            world.until = time.monotonic() + SECONDS
            agents = ThreadPoolExecutor(8)
            running = [agents.submit(agent, world, number) for number in range(8)]
            trouble(world)
            for one in running:
                one.result(180)
            check(world)
        finally:
            for server in world.servers:
                server.stop()


def check(world: World) -> None:
    """The invariants, over everything that happened."""
    call_command("recover", "--older-than-s", "0")
    sessions = {reply.session for reply in world.replies}
    logger.warning(
        "%d replies, %d sessions, %d kills, %d failures",
        len(world.replies),
        len(sessions),
        world.kills,
        world.failures,
    )
    assert world.replies
    assert len({(reply.session, reply.node) for reply in world.replies}) == len(world.replies)
    for session in sessions:
        nodes = dict(Node.objects.filter(session_id=session).values_list("seq", "parent_seq"))
        assert sorted(nodes) == list(range(len(nodes)))
        assert set(
            TokenCheckpoint.objects.filter(session_id=session).values_list("node_seq", flat=True)
        ) == set(nodes)
        records = Record.objects.filter(session_id=session)
        assert set(records.values_list("state", flat=True)) <= ENDS
        attached = [seq for seq in records.values_list("node_seq", flat=True) if seq is not None]
        assert set(attached) >= set(nodes)
    check_samples(random.Random(SEED).sample(sorted(sessions), min(_EXPORTED, len(sessions))))
    for reply in random.Random(SEED).sample(world.replies, min(_COMPARED, len(world.replies))):
        shown = world.servers[0].client.get(reply.session, f"?leaf={reply.node}")
        ids = shown["metadata"]["accumulated_token_ids"]
        assert ids, reply
        parent = Node.objects.get(session_id=reply.session, seq=reply.node).parent_seq
        if parent is not None:
            before = world.servers[1].client.get(reply.session, f"?leaf={parent}")
            served = before["metadata"]["accumulated_token_ids"]
            assert ids[: len(served)] == served


def check_samples(sessions: list[str]) -> None:
    """Trained ids are proven: sampled in that context, with that logprob, in one row only."""
    with tempfile.TemporaryDirectory() as folder:
        report = export(Path(folder), sessions=sessions)
    assert report["failures"] == []
    assert report["proof"]["proven"] == report["trained_tokens"] > 0
    assert report["proof"]["adds_up"]
    assert set(report["proof"]["unproven"].values()) == {0}
