"""Sessions that were idle for too long are ended, so that their rollouts and groups can be complete.

Idle = no request arrived and no turn was committed for `idle_timeout_s`. A session that is waiting for its
engine is never idle.
"""

import asyncio

from sessions_app.store.pool import Database, Executor

_BATCH = 1000

_REAP = """
    WITH idle AS (
        SELECT s.id FROM sessions_app_session s
        WHERE s.status = 'open' AND s.idle_timeout_s IS NOT NULL
          AND s.last_activity_at < now() - s.idle_timeout_s * interval '1 second'
          AND NOT EXISTS (
              SELECT 1 FROM sessions_app_record r WHERE r.session_id = s.id
              AND (r.state = 'intent' OR r.arrived_at > now() - s.idle_timeout_s * interval '1 second'))
        ORDER BY s.created_at LIMIT %s
        FOR UPDATE OF s SKIP LOCKED
    )
    UPDATE sessions_app_session s
    SET status = 'idle', finished_at = clock_timestamp(), version = s.version + 1
    FROM idle WHERE s.id = idle.id AND s.status = 'open'
    RETURNING s.id
"""


async def reap(db: Executor) -> int:
    """End what is idle; how many sessions that were."""
    ended = 0
    while True:
        rows = await db.fetch_all(_REAP, (_BATCH,))
        ended += len(rows)
        if len(rows) < _BATCH:
            return ended


def reap_idle(conninfo: str) -> int:
    """The same for callers without an event loop."""
    return asyncio.run(_reap(conninfo))


async def _reap(conninfo: str) -> int:
    db = Database(conninfo, max_size=1)
    await db.open()
    try:
        return await reap(db)
    finally:
        await db.close()
