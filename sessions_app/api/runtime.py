"""What a web process holds while it runs: configuration, database pool, profiles, turn service, running
turns.

Loop-bound: built when the server starts, closed when it stops. Nothing in it is state that another process
could miss.
"""

import asyncio
import gc
import logging
import os
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sessions_app.api.rate import KeyLimiter, configured_limiter
from sessions_app.errors import SHUT_DOWN, NotReady
from sessions_app.store import leases
from sessions_app.store.pool import LOST_CONNECTION, Database
from sessions_app.telemetry.exporter import SpanExporter
from sessions_app.turns.leasing import LeaseKeeper, new_lease
from sessions_app.turns.profiles import DEFAULT_PROFILE, Profile, Profiles
from sessions_app.turns.service import TurnService
from tito_project.configuration import Configuration
from tito_project.version import VERSION
from trainer_export.serving import SamplesService
from trainer_export.spans.service import SpansService
from trainer_export.stream.serving import StreamService

logger = logging.getLogger(__name__)

T = TypeVar("T")

_ALLOCATIONS_A_COLLECTION = 10_000
_LAST_WORDS_S = 2.0
"""For records and error events of turns that are given up at a shutdown."""


@dataclass(slots=True)
class Runtime:
    """The parts of one process."""

    configuration: Configuration
    db: Database
    profiles: Profiles
    turns: TurnService
    samples: SamplesService
    spans: SpansService
    stream: StreamService
    lease: LeaseKeeper
    tasks: "set[asyncio.Task[Any]]" = field(default_factory=set)
    """Turns in progress, held so that a vanished client does not lose them."""
    requests: "set[asyncio.Task[Any]]" = field(default_factory=set)
    """What is being answered, turns and all else."""
    draining: bool = False
    limiter: KeyLimiter | None = None
    """None: keys may ask as often as they like."""
    own_spans: SpanExporter | None = None
    """None: nobody collects spans of turns."""

    def spawn(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Run work in a task of its own that outlives the request it serves."""
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: "asyncio.Task[Any]") -> None:
        self.tasks.discard(task)
        if not task.cancelled():
            task.exception()  # seen: an abandoned failure is no "never retrieved" warning

    async def drain(self) -> None:
        """Refuse new turns. What is in progress may end, within the configured limit; turns that have not
        are given up, and their records and clients told. Asked a second time, it gives up at once.
        """
        limit_s = 0.0 if self.draining else self.configuration.drain_s
        self.draining = True
        late = await _late(self.tasks | self.requests, limit_s)
        turns = late & self.tasks
        if turns:
            logger.warning("%d turns were still generating at shutdown", len(turns))
            for turn in turns:
                turn.cancel(SHUT_DOWN)
            await _late(late, _LAST_WORDS_S)


async def _late(tasks: "set[asyncio.Task[Any]]", limit_s: float) -> "set[asyncio.Task[Any]]":
    """Those that have not ended in time."""
    if not tasks:
        return set()
    _, late = await asyncio.wait(tasks, timeout=limit_s)
    return late


_current: Runtime | None = None


def current() -> Runtime:
    """The runtime of this process. Raises NotReady before the server has started."""
    if _current is None:
        raise NotReady("the server is starting")
    return _current


@contextmanager
def answering() -> Iterator[None]:
    """The current task answers a request: a shutdown waits for it."""
    task = asyncio.current_task()
    if _current is None or task is None:
        yield
        return
    requests = _current.requests
    requests.add(task)
    try:
        yield
    finally:
        requests.discard(task)


async def start(
    conninfo: str, build: Callable[[str], Profile | None], configuration: Configuration
) -> Runtime:
    """Open the pool, load the default profile, settle what dead processes left."""
    global _current
    # Texts are tokenised one at a time: a thread for each processor would help none of them.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    db = Database(conninfo, max_size=configuration.db_pool, prepared=configuration.prepared_statements)
    profiles = Profiles(build)
    samples = SamplesService(db, configuration)
    stream = StreamService(db, profiles, configuration)
    own_spans = _exporter(configuration)
    lease = new_lease(configuration.instance_id, configuration.lease_s)
    turns = TurnService(db, profiles, configuration, own_spans, lease)
    await db.open()
    await profiles.get(DEFAULT_PROFILE)
    await leases.renew(db, lease)
    keeper = LeaseKeeper(conninfo, lease, older_than_s=configuration.engine_timeout + 60)
    runtime = Runtime(configuration, db, profiles, turns, samples, SpansService(db), stream, keeper)
    runtime.own_spans = own_spans
    runtime.limiter = configured_limiter(configuration.key_rate)
    await _settle(runtime)
    keeper.start()
    _spare_what_stays()
    _current = runtime
    return runtime


def _exporter(configuration: Configuration) -> SpanExporter | None:
    if configuration.otlp_endpoint is None:
        return None
    exporter = SpanExporter(
        configuration.otlp_endpoint,
        {name: str(value) for name, value in configuration.otlp_headers.items()},
        {
            "service.name": "tito",
            "service.version": VERSION,
            "service.instance.id": configuration.instance_id,
        },
        every_s=configuration.otlp_every_s,
    )
    exporter.start()
    return exporter


def _spare_what_stays() -> None:
    """Modules, templates and tokenizers live as long as the process: walking them again and again would hold
    up every turn for a tenth of a second. Turns leave no circles, so looking for some is rarely worth it.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS_A_COLLECTION, 20, 20)


async def _settle(runtime: Runtime) -> None:
    try:
        lost = await leases.give_up(runtime.db, runtime.configuration.engine_timeout + 60)
    except LOST_CONNECTION:
        return
    if lost:
        logger.warning("%d requests of ended processes were marked lost", lost)


async def stop(runtime: Runtime) -> None:
    """Drain, then close everything."""
    global _current
    await runtime.drain()
    runtime.samples.close()
    runtime.spans.close()
    await runtime.lease.close()
    await runtime.profiles.close()
    if runtime.own_spans is not None:
        await runtime.own_spans.close()
    if runtime.limiter is not None:
        await runtime.limiter.close()
    await runtime.db.close()
    _current = None
