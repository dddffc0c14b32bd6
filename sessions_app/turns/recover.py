"""Intents left by processes that ended: found, and marked lost, so that every request has an end.

Whose process let its lease run out, nobody generates; nor one older than the engine's time-out. A reply that
arrives for a lost intent all the same is kept as late, never attached.
"""

import asyncio

from sessions_app.store import leases
from sessions_app.store.pool import Database


def settle_dangling(conninfo: str, older_than_s: float) -> int:
    """Mark intents of dead processes as lost, and those older than this; how many. Not for a running event
    loop.
    """
    return asyncio.run(_settle(conninfo, older_than_s))


async def _settle(conninfo: str, older_than_s: float) -> int:
    db = Database(conninfo, max_size=1)
    await db.open()
    try:
        return await leases.give_up(db, older_than_s)
    finally:
        await db.close()
