"""Keeps the lease of this process, and gives up the requests of processes that did not keep theirs.

In a thread with a loop and a connection of its own: neither a busy event loop nor a pool without a free
connection makes a process look dead. Nothing here is in the way of a turn.
"""

import asyncio
import logging
import os
import secrets
import socket
import threading

from sessions_app.store import leases
from sessions_app.store.leases import Lease
from sessions_app.store.pool import LOST_CONNECTION, Database
from sessions_app.unexpected import whence

logger = logging.getLogger(__name__)

_RENEWALS = 6
"""In the life of a lease: some may fail."""
_GOODBYE_S = 5.0


def new_lease(process: str, ttl_s: float) -> Lease:
    """A lease of this process, which it has not taken yet."""
    return Lease(secrets.randbits(62), process, socket.gethostname(), os.getpid(), ttl_s)


class LeaseKeeper:
    """The thread of one process."""

    def __init__(self, conninfo: str, lease: Lease, *, older_than_s: float) -> None:
        """`older_than_s`: age at which an intent is given up whoever holds it."""
        self._conninfo = conninfo
        self._lease = lease
        self._older_than_s = older_than_s
        self._failing = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="tito-lease", daemon=True)

    def start(self) -> None:
        """Begin; the lease was taken before."""
        self._thread.start()

    async def close(self) -> None:
        """Say goodbye, within a limit."""
        if self._loop is not None and self._ending is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._ending.set)
        await asyncio.to_thread(self._thread.join, _GOODBYE_S)

    def _run(self) -> None:
        asyncio.run(self._keep())

    async def _keep(self) -> None:
        self._loop, self._ending = asyncio.get_running_loop(), asyncio.Event()
        pause_s = self._lease.ttl_s / _RENEWALS
        db = Database(self._conninfo, max_size=1, patience_s=pause_s)
        await db.open(wait=False)
        try:
            while not await self._ended_within(pause_s):
                await self._tick(db)
            await self._leave(db)
        finally:
            await db.close()

    async def _ended_within(self, seconds: float) -> bool:
        assert self._ending is not None
        try:
            await asyncio.wait_for(self._ending.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def _tick(self, db: Database) -> None:
        try:
            await leases.renew(db, self._lease)
            lost = await leases.give_up(db, self._older_than_s)
            await leases.forget(db)
        except Exception as error:  # whatever it is: others take a process whose thread has ended for dead
            self._tell(error)
            return
        self._tell(None)
        if lost:
            logger.warning("%d requests of ended processes were marked lost", lost)

    async def _leave(self, db: Database) -> None:
        try:
            await leases.leave(db, self._lease.id)
        except LOST_CONNECTION:
            logger.warning("database away; the lease of this process runs out by itself")

    def _tell(self, error: Exception | None) -> None:
        """Once when it begins to fail, once when it is over."""
        if error is not None and not self._failing:
            logger.warning("the lease of this process cannot be renewed: %s", whence(error))
        elif error is None and self._failing:
            logger.warning("the lease of this process can be renewed again")
        self._failing = error is not None
