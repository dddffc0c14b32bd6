"""Server-sent events while a turn is being generated.

Invariant: no byte goes out before the reply or the first keep-alive; until then an error keeps its own
status.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TypeVar

from sessions_app.errors import SHUT_DOWN, Draining, TitoError
from sessions_app.unexpected import whence

logger = logging.getLogger(__name__)

KEEP_ALIVE = b": keep-alive\n\n"

T = TypeVar("T")


async def finished_within(work: "asyncio.Task[T]", seconds: float | None) -> bool:
    """Whether a task ends in time (None: wait for it); it is not cancelled if it does not."""
    done, _ = await asyncio.wait({work}, timeout=seconds)
    return bool(done)


async def stream(
    work: "asyncio.Task[T]",
    events: Callable[[T], Iterable[bytes]],
    failure: Callable[[TitoError], Iterable[bytes]],
    every_s: float,
    keep_alive: bytes = KEEP_ALIVE,
) -> AsyncIterator[bytes]:
    """Keep-alives until the task ends, then its events, or the protocol's own error events."""
    while not work.done():
        yield keep_alive
        await finished_within(work, every_s)
    try:
        pieces = list(events(work.result()))
    except (Exception, asyncio.CancelledError) as error:
        pieces = list(failure(_told(error)))
    for event in pieces:
        yield event


async def padded_json(
    work: "asyncio.Task[T]",
    body: Callable[[T], bytes],
    failure: Callable[[TitoError], bytes],
    every_s: float,
) -> AsyncIterator[bytes]:
    """A JSON reply with leading white space while it is waited for; the status is out by then."""
    while not work.done():
        yield b" "
        await finished_within(work, every_s)
    try:
        reply = body(work.result())
    except (Exception, asyncio.CancelledError) as error:
        reply = failure(_told(error))
    yield reply


def _told(error: BaseException) -> TitoError:
    """What a client is told of a failure whose status is out already."""
    if isinstance(error, asyncio.CancelledError):  # the turn; who reads this was not cancelled
        return Draining(SHUT_DOWN)
    if isinstance(error, TitoError):
        return error
    logger.error("a turn failed behind keep-alives: %s", whence(error))
    return TitoError("internal error")
