"""One batch of OTLP from bytes to rows: decoded in a thread, sorted by session, stored.

Invariant: no more than a fixed number of bytes is worked on at a time; what is beyond that, and what meets a
database that does not answer in time, is told to come again at once.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from sessions_app.errors import NotReady
from sessions_app.store.pool import LOST_CONNECTION, Database
from trainer_export.spans.destinations import Addressed, Envelope, FindSession, addressed, sort_out
from trainer_export.spans.labelling import label_session
from trainer_export.spans.storing import store_spans
from trainer_export.spans.waiting import hold
from trainer_export.traces.otlp import DEFAULT_MAX_BYTES, Batch, Rejection

logger = logging.getLogger(__name__)

MOST_BYTES_AT_ONCE = 64 * 1024 * 1024
MOST_BATCHES_AT_ONCE = 8
PATIENCE_S = 6.0
"""A client gives a batch up after ten seconds, retries included."""
LABELLED_AFTER_S = 1.0
_THREADS = 2
_USUAL_RATIO = 10


@dataclass(frozen=True, slots=True)
class Delivery:
    """A body as it came."""

    body: bytes
    content_type: str
    content_encoding: str

    @property
    def weight(self) -> int:
        """Bytes it may turn out to be."""
        if self.content_encoding.strip().lower() in ("", "identity"):
            return len(self.body)
        return min(DEFAULT_MAX_BYTES, _USUAL_RATIO * len(self.body))


Decode = Callable[[bytes, str, str], Batch]


class Gate:
    """How much is worked on."""

    def __init__(self, batches: int, size: int) -> None:
        self._batches = batches
        self._bytes = size

    @contextmanager
    def passed(self, size: int) -> Iterator[None]:
        """Raises NotReady where there is too much already."""
        if self._batches < 1 or self._bytes < size:
            raise NotReady("too many spans at once")
        self._batches -= 1
        self._bytes -= size
        try:
            yield
        finally:
            self._batches += 1
            self._bytes += size


class Labelling:
    """Labels nodes a moment after spans arrived, once for all that arrive meanwhile.

    What a process leaves undone the worker does (`labelling.label_due`).
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._due: dict[UUID, asyncio.Task[None]] = {}
        self._turn = asyncio.Semaphore(1)

    def soon(self, session_id: UUID) -> None:
        """Have a session labelled."""
        if session_id not in self._due:
            self._due[session_id] = asyncio.create_task(self._label(session_id))

    async def _label(self, session_id: UUID) -> None:
        await asyncio.sleep(LABELLED_AFTER_S)
        async with self._turn:
            del self._due[session_id]
            try:
                await label_session(self._db, session_id)
            except Exception as error:
                logger.warning("nodes were not labelled: %s", type(error).__name__)

    def close(self) -> None:
        """Drop what is not begun."""
        for task in self._due.values():
            task.cancel()


class SpansService:
    """Receives spans for the sessions of this process's database."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._gate = Gate(MOST_BATCHES_AT_ONCE, MOST_BYTES_AT_ONCE)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="spans")
        self._labelling = Labelling(db)

    def close(self) -> None:
        """Let go of the threads, and of what the worker will do as well."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._labelling.close()

    async def receive(
        self, delivery: Delivery, decode: Decode, envelope: Envelope, find: FindSession
    ) -> list[Rejection]:
        """Store a batch; the spans that were not taken, with reasons.

        Raises what `decode` raises, and NotReady.
        """
        with self._gate.passed(delivery.weight):
            work = partial(_decoded, delivery, decode, envelope)
            rejected, spans = await asyncio.get_running_loop().run_in_executor(self._threads, work)
            try:
                async with asyncio.timeout(PATIENCE_S):
                    return [*rejected, *await self._store(spans, find)]
            except (*LOST_CONNECTION, TimeoutError) as error:
                logger.warning("spans were not stored: %s", type(error).__name__)
                raise NotReady("the database does not answer") from None

    async def _store(self, spans: list[Addressed], find: FindSession) -> list[Rejection]:
        batch = await sort_out(self._db, spans, find)
        for session, routed in sorted(batch.by_session.items()):
            async with self._db.transaction() as transaction:
                await store_spans(transaction, session, routed)
            self._labelling.soon(session)
        await hold(self._db, batch.unrouted)
        return batch.rejected


def _decoded(
    delivery: Delivery, decode: Decode, envelope: Envelope
) -> tuple[list[Rejection], list[Addressed]]:
    batch = decode(delivery.body, delivery.content_type, delivery.content_encoding)
    return batch.rejected, addressed(batch.spans, envelope)
