"""What the receiver does when there is too much to do, or nothing to store it in."""

import asyncio
import json
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from uuid import UUID, uuid4

import psycopg
import pytest

from sessions_app.errors import NotReady
from trainer_export.spans import service
from trainer_export.spans.destinations import Envelope, addressed
from trainer_export.spans.service import Delivery, Gate, SpansService
from trainer_export.spans.storing import with_sequences
from trainer_export.traces.otlp import Route, decode_traces

SPAN = {"traceId": "1" * 32, "spanId": "2" * 16, "name": "a"}
BODY = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [SPAN]}]}]}).encode()
SESSION = uuid4()
NOW = datetime.now(UTC)


class Unreachable:
    """A database that is gone, or one that never answers."""

    def __init__(self, *, hangs=False):
        self._hangs = hangs

    @asynccontextmanager
    async def transaction(self):
        if self._hangs:
            await asyncio.sleep(60)
        raise psycopg.OperationalError("gone")
        yield


async def found(route: Route) -> UUID:
    return SESSION


def receive(db):
    spans = SpansService(db)
    envelope = Envelope(NOW, Route(session_id=SESSION.hex), Route())
    return spans.receive(Delivery(BODY, "application/json", ""), decode_traces, envelope, found)


async def test_a_lost_database_asks_to_come_again():
    with pytest.raises(NotReady):
        await receive(Unreachable())


async def test_a_database_that_hangs_asks_to_come_again_in_time(monkeypatch):
    monkeypatch.setattr(service, "PATIENCE_S", 0.05)
    with pytest.raises(NotReady):
        await asyncio.wait_for(receive(Unreachable(hangs=True)), 5)


def test_no_more_than_so_much_at_a_time():
    gate = Gate(batches=2, size=100)
    with gate.passed(60):
        with pytest.raises(NotReady), gate.passed(50):
            pass
        with gate.passed(40), pytest.raises(NotReady), gate.passed(0):
            pass
    with gate.passed(100):
        pass


def test_a_zipped_body_counts_for_what_it_may_unfold_to():
    assert Delivery(b"x" * 10, "", "gzip").weight == 100
    assert Delivery(b"x" * 10, "", "identity").weight == 10


def test_sequence_ids_go_on_behind_given_ones():
    batch = decode_traces(BODY, "application/json")
    (span,) = addressed(batch.spans, Envelope(NOW, Route(), Route()))
    given = addressed(
        [
            type(batch.spans[0])(
                **{n: getattr(batch.spans[0], n) for n in batch.spans[0].__slots__}
                | {"attributes": {"tito.sequence_id": 9}}
            )
        ],
        Envelope(NOW, Route(), Route()),
    )[0]
    numbered = with_sequences([span.span, given.span, span.span], 2)
    assert (numbered.sequences, numbered.last) == ([3, 9, 10], 10)
