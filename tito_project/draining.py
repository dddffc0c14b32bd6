"""The first SIGTERM or SIGINT: new turns are refused, those in flight end, and only then is the web server
told.

uvicorn stops listening at once, and who comes then finds nobody instead of 503 `draining`. Invariant: until
the server is told, everybody who connects is answered; a second signal is told at once.
"""

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

_Handler = Callable[[int, FrameType | None], Any]
_Drain = Callable[[], Coroutine[Any, Any, None]]

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def drained_first(drain: _Drain) -> Iterator[None]:
    """Within the block, signals reach the handlers that are there after `drain` has ended."""
    handlers = _handlers()
    farewell = _Farewell(drain, handlers)
    for number in handlers:
        signal.signal(number, farewell.heard)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _handlers() -> dict[int, _Handler]:
    """Those of a server; another thread than the main one has none."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    there = {number: signal.getsignal(number) for number in _SIGNALS}
    return {number: handler for number, handler in there.items() if callable(handler)}


class _Farewell:
    """One process that is asked to end."""

    def __init__(self, drain: _Drain, handlers: Mapping[int, _Handler]) -> None:
        self._drain = drain
        self._handlers = handlers
        self._loop = asyncio.get_running_loop()
        self._draining: asyncio.Task[None] | None = None
        self._begun = False

    def heard(self, number: int, frame: FrameType | None) -> None:
        """A signal."""
        if self._begun:
            self._handlers[number](number, frame)
        else:
            self._begun = True
            self._loop.call_soon_threadsafe(self._begin, number)

    def _begin(self, number: int) -> None:
        self._draining = self._loop.create_task(self._drained(number))

    async def _drained(self, number: int) -> None:
        try:
            await self._drain()
        finally:
            self._handlers[number](number, None)
