"""A process is killed while spans stream in: what it acknowledged is stored, and sending all again changes
nothing but what is missing.
"""

import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from tests.client import Client
from tests.fakes.engine import FakeEngine
from tests.integration.spans_support import batch, send, span, stored
from tests.integration.test_processes import environment
from tests.integration.web import web_processes
from trainer_export.models import Trace

pytestmark = pytest.mark.slow
BATCHES, SPANS = 40, 25


def batches(trace: int, session: str) -> list[dict[str, Any]]:
    return [
        batch(*(span(1 + at * SPANS + n, trace) for n in range(SPANS)), tito__session_id=session)
        for at in range(BATCHES)
    ]


def acknowledged(client: Client, bodies: Sequence[dict[str, Any]]) -> list[int]:
    """Numbers of the batches that were answered with success before the server was gone."""
    done = []
    for at, body in enumerate(bodies):
        try:
            if send(client, body).status == 200:
                done.append(at)
        except (OSError, HTTPException):
            break
    return done


def test_what_was_acknowledged_is_stored(tmp_path: Path) -> None:
    with FakeEngine() as engine, web_processes(2, environment(tmp_path, engine)) as (victim, other):
        trace, session = uuid.uuid4().int, victim.client.create()
        bodies = batches(trace, session)
        with ThreadPoolExecutor(1) as pool:
            sending = pool.submit(acknowledged, victim.client, bodies)
            while not stored(trace):
                pass
            victim.kill()
            done = sending.result()
        held = {int(row.span_id, 16) for row in stored(trace)}
        assert {1 + at * SPANS + n for at in done for n in range(SPANS)} <= held
        for body in [*bodies, *reversed(bodies)]:
            assert send(other.client, body).json == {}
        rows = stored(trace)
        assert sorted(int(row.span_id, 16) for row in rows) == list(range(1, BATCHES * SPANS + 1))
        assert sorted(row.sequence_id for row in rows) == list(range(1, BATCHES * SPANS + 1))
        assert Trace.objects.get(session_id=session).spans == BATCHES * SPANS


def test_several_processes_take_the_same_spans_at_once(tmp_path: Path) -> None:
    with FakeEngine() as engine, web_processes(2, environment(tmp_path, engine)) as processes:
        trace, session = uuid.uuid4().int, processes[0].client.create()
        bodies = batches(trace, session)
        with ThreadPoolExecutor(8) as pool:
            works = [(processes[at % 2].client, bodies[:: 1 - 2 * (at // 2 % 2)]) for at in range(8)]
            for done in pool.map(lambda work: acknowledged(*work), works):
                assert len(done) == BATCHES
        assert sorted(row.sequence_id for row in stored(trace)) == list(range(1, BATCHES * SPANS + 1))
        assert Trace.objects.get(session_id=session).spans == BATCHES * SPANS
