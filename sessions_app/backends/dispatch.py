"""From a request to an engine's 200: picks the worker, sends, moves on from dead ones, waits where it may.

Invariant: after the first byte went out to an engine, the request is not sent again, with one exception that
the caller must ask for: a 429 or 503 with `Retry-After` says that nothing was generated.
"""

import asyncio
import logging
import random
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from sessions_app import errors
from sessions_app.backends.base import GenerationRequest
from sessions_app.backends.headers import forwarded
from sessions_app.backends.http import ConnectFailed, HttpClient, HttpReply
from sessions_app.backends.routing import Engine, EnginePool
from sessions_app.backends.tokenizer_check import Probe, reads_alike

logger = logging.getLogger(__name__)

HEALTH_PATH = "/health"
_HEALTH_TIMEOUT_S = 5.0
_ABORT_TIMEOUT_S = 5.0
_PATIENT_ATTEMPTS = 4
_LONGEST_PAUSE_S = 30.0


@dataclass(frozen=True, slots=True)
class Answer:
    """An engine's 200."""

    body: bytes
    headers: Mapping[str, str]
    worker: str
    """Base URL that gave it."""


@dataclass(frozen=True, slots=True)
class Abort:
    """How to tell an engine that nobody waits any more."""

    path: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One request on its way to whichever engine serves the session."""

    session_id: str
    method: str
    target: str
    """Path and query."""
    body: bytes
    headers: Mapping[str, str]
    worker: str = ""
    """Base URL to prefer."""
    abort: Abort | None = None
    """Sent after it when nobody waits any more."""


class Dispatcher:
    """One per backend; owns its connections and, with several engines, their health checks."""

    def __init__(
        self,
        client: HttpClient,
        pool: EnginePool,
        *,
        probe: Probe | None = None,
        check_every_s: float = 5.0,
    ) -> None:
        self._client = client
        self._pool = pool
        self._probe = probe
        self._check_every_s = check_every_s
        self._background: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Open connections; with one engine alone nothing is ever sent unasked."""
        await self._client.start()
        if len(self._pool.engines) > 1 and not self._background:
            self._spawn(self._check_forever())

    async def close(self) -> None:
        """Stop the checks and close the connections; idempotent."""
        tasks = tuple(self._background)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._client.close()

    async def ready(self) -> bool:
        """Whether any engine answers its health endpoint, and none is known to use another tokenizer."""
        answers = await asyncio.gather(*(self._healthy(engine) for engine in self._pool.engines))
        for engine, healthy in zip(self._pool.engines, answers, strict=True):
            if healthy:
                await self._compare_tokenizer(engine)
        return any(answers) and not any(engine.reads_alike is False for engine in self._pool.engines)

    async def post(
        self,
        request: GenerationRequest,
        path: str,
        body: bytes,
        affinity: str,
        *,
        with_query: bool = False,
        abort: Abort | None = None,
    ) -> Answer:
        """The 200 of an engine. Raises UpstreamStatus for any other status, or a transport error."""
        headers = {"content-type": "application/json"} | forwarded(
            request.headers, affinity, request.session_id
        )
        target = f"{path}?{request.query}" if with_query and request.query else path
        outgoing = Outgoing(
            request.session_id, "POST", target, body, headers, worker=request.worker, abort=abort
        )
        for attempt in range(1, _PATIENT_ATTEMPTS + 1):
            reply, worker = await self._send_somewhere(outgoing)
            if reply.status == 200:
                return Answer(reply.body, reply.headers, worker)
            pause = _pause(reply) if request.patient and attempt < _PATIENT_ATTEMPTS else None
            if pause is None:
                break
            await asyncio.sleep(pause)
        if not 100 <= reply.status <= 599:
            raise errors.UpstreamInvalidReply(f"invalid engine reply: there is no status {reply.status}")
        raise errors.UpstreamStatus(reply.status, reply.body, reply.headers)

    async def send(self, outgoing: Outgoing) -> HttpReply:
        """An engine's answer of whatever status, for requests that are no generations."""
        return (await self._send_somewhere(outgoing))[0]

    async def _send_somewhere(self, outgoing: Outgoing) -> tuple[HttpReply, str]:
        """The first answer; an engine that refuses connections is left for another."""
        refused: frozenset[str] = frozenset()
        failure: ConnectFailed | None = None
        while engine := self._pool.choose(outgoing.session_id, outgoing.worker, refused):
            try:
                return await self._send_to(engine, outgoing), engine.url
            except ConnectFailed as error:
                engine.refused()
                refused, failure = refused | {engine.url}, error
        raise failure or errors.UpstreamUnreachable("no engine to send to")

    async def _send_to(self, engine: Engine, outgoing: Outgoing) -> HttpReply:
        if engine.reads_alike is False:
            raise errors.EngineTokenMismatch("engine token mismatch: the engine uses another tokenizer")
        url = engine.url + outgoing.target
        with self._pool.occupied(engine):
            try:
                return await self._client.send(outgoing.method, url, outgoing.body, outgoing.headers)
            except (asyncio.CancelledError, errors.UpstreamTimeout):
                if outgoing.abort is not None:
                    self._spawn(self._abort(engine, outgoing.abort, outgoing.headers))
                raise

    async def _abort(self, engine: Engine, abort: Abort, headers: Mapping[str, str]) -> None:
        """With the request's own headers, so that routers find its worker and keys are accepted."""
        try:
            await self._client.request("POST", engine.url + abort.path, abort.body, headers, _ABORT_TIMEOUT_S)
        except errors.TitoError as error:
            logger.warning("abort at %s failed: %s", engine.url, error)

    async def _check_forever(self) -> None:
        while True:
            await asyncio.sleep(self._check_every_s * random.uniform(0.8, 1.2))
            outcomes = await asyncio.gather(*(self._healthy(engine) for engine in self._pool.engines))
            for engine, healthy in zip(self._pool.engines, outcomes, strict=True):
                self._note(engine, healthy)

    def _note(self, engine: Engine, healthy: bool) -> None:
        before = engine.healthy
        engine.report(healthy)
        if engine.healthy != before:
            logger.warning("engine %s is %s", engine.url, "healthy again" if healthy else "down")

    async def _compare_tokenizer(self, engine: Engine) -> None:
        """Once it is known that an engine reads ids as we do, it is not asked again."""
        if self._probe is None or engine.reads_alike:
            return
        engine.reads_alike = await reads_alike(self._client, engine.url, self._probe)
        if engine.reads_alike is False:
            logger.error("engine %s uses another tokenizer than TITO_MODEL", engine.url)

    async def _healthy(self, engine: Engine) -> bool:
        """It answers; a server that knows no health endpoint is up as well."""
        try:
            reply = await self._client.request("GET", engine.url + HEALTH_PATH, None, {}, _HEALTH_TIMEOUT_S)
        except errors.TitoError:
            return False
        return reply.status < 500

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


def _pause(reply: HttpReply) -> float | None:
    """Seconds to wait before asking again; None = the engine named none, or more than we wait."""
    if reply.status not in (429, 503):
        return None
    seconds = _retry_after(reply.headers.get("retry-after", ""))
    if seconds is None:
        return None
    return seconds * random.uniform(1.0, 1.1) if 0 <= seconds <= _LONGEST_PAUSE_S else None


def _retry_after(text: str) -> float | None:
    """Seconds, which HTTP also spells as a date; None = neither."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, at.timestamp() - time.time())
