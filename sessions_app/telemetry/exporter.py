"""Sends spans to a collector, beside the turns and never in their way.

Invariant: a turn waits for nothing here. What the collector does not take, or what comes while the queue is
full, is dropped and counted.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from typing import Protocol

import aiohttp

from sessions_app.telemetry.turn_span import TurnSpan, Value, request_of

logger = logging.getLogger(__name__)

_MOST_WAITING = 4096
_BATCH = 512
_TIMEOUT = aiohttp.ClientTimeout(total=10.0)
_LAST_WORDS_S = 2.0


class SpanSink(Protocol):
    """Where spans of turns go."""

    wanted: bool
    """Whether anybody collects them."""

    def offer(self, span: TurnSpan) -> None:
        """One more; returns at once."""


class NoSpans:
    """Nobody collects."""

    wanted = False

    def offer(self, span: TurnSpan) -> None:
        """See SpanSink."""


class SpanExporter:
    """A bounded queue and a task that empties it every few seconds."""

    wanted = True

    def __init__(
        self, endpoint: str, headers: Mapping[str, str], resource: Mapping[str, Value], *, every_s: float
    ) -> None:
        self._endpoint = endpoint
        self._headers = {**headers, "content-type": "application/x-protobuf"}
        self._resource = resource
        self._every_s = every_s
        self._waiting: deque[TurnSpan] = deque()
        self._failing = False
        self._task: asyncio.Task[None] | None = None
        self.sent = 0
        """Turns whose spans the collector took."""
        self.dropped = 0
        """Turns whose spans it did not."""

    def start(self) -> None:
        """Begin to send, on the running loop."""
        self._task = asyncio.create_task(self._run())

    def offer(self, span: TurnSpan) -> None:
        """See SpanSink."""
        if len(self._waiting) >= _MOST_WAITING:
            self.dropped += 1
        else:
            self._waiting.append(span)

    async def close(self) -> None:
        """Send what waits, for a moment at most, and end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        try:
            async with asyncio.timeout(_LAST_WORDS_S):
                await self._send_all()
        except TimeoutError:
            logger.warning("%d spans were not sent at shutdown", len(self._waiting))

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            await self._send_all()

    async def _send_all(self) -> None:
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
            await self._send(batch)

    async def _send(self, batch: list[TurnSpan]) -> None:
        taken = False
        try:
            body = request_of(batch, self._resource)
            async with (
                aiohttp.ClientSession(timeout=_TIMEOUT) as session,
                session.post(
                    self._endpoint, data=body, headers=self._headers, allow_redirects=False
                ) as reply,
            ):
                taken = reply.status < 300
                self._tell(None if taken else f"status {reply.status}")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._tell(type(error).__name__)
        finally:
            self._count(len(batch), taken=taken)

    def _count(self, turns: int, *, taken: bool) -> None:
        if taken:
            self.sent += turns
        else:
            self.dropped += turns

    def _tell(self, failure: str | None) -> None:
        """Once when it begins to fail, once when it is over."""
        if failure is not None and not self._failing:
            logger.warning("spans are not taken by the collector: %s", failure)
        if failure is None and self._failing:
            logger.warning("spans are taken again")
        self._failing = failure is not None
