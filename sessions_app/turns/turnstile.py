"""One commit of a session at a time in one process, and one record of a refusal.

The session's row puts commits in order anyway, but each that waited for it there would hold a database
connection: a session with hundreds of requests at once would take every connection from all the others.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from sessions_app.errors import NotReady


class Turnstile:
    """Used from one event loop; remembers nothing of sessions that nobody waits for."""

    def __init__(self) -> None:
        self._locks: dict[UUID, asyncio.Lock] = {}
        self._users: dict[UUID, int] = {}

    @asynccontextmanager
    async def only(self, session_id: UUID, patience_s: float) -> AsyncIterator[None]:
        """Be the only one of a session. Raises NotReady where that takes longer than `patience_s`."""
        lock = self._locks.setdefault(session_id, asyncio.Lock())
        self._users[session_id] = self._users.get(session_id, 0) + 1
        try:
            await _acquired(lock, patience_s)
            try:
                yield
            finally:
                lock.release()
        finally:
            self._leave(session_id)

    def _leave(self, session_id: UUID) -> None:
        self._users[session_id] -= 1
        if not self._users[session_id]:
            del self._users[session_id], self._locks[session_id]


async def _acquired(lock: asyncio.Lock, patience_s: float) -> None:
    try:
        async with asyncio.timeout(patience_s if lock.locked() else None):
            await lock.acquire()
    except TimeoutError:
        raise NotReady("what came earlier in this session could not be stored in time") from None
