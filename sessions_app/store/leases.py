"""Leases of web processes: which of them live, and whose requests nobody works on any more.

Invariants: no clock but the database's counts. A lease has run out only if another process renewed its own in
time for as long as that: a database that was away, or a clock that jumped, says nothing about anybody.
"""

from dataclasses import dataclass

from sessions_app.store.pool import Executor


@dataclass(frozen=True, slots=True)
class Lease:
    """What a process says of itself."""

    id: int
    process: str
    host: str
    pid: int
    ttl_s: float
    """Without a renewal for so long, others take it for dead."""


_RENEW = """
    INSERT INTO sessions_app_processlease AS l (id, process, host, pid, since, renewed_at, expires_at)
    SELECT
        %(id)s::bigint, %(process)s::text, %(host)s::text, %(pid)s::int, t.now, t.now,
        t.now + make_interval(secs => %(ttl)s::float8)
    FROM (SELECT clock_timestamp() AS now) AS t
    ON CONFLICT (id) DO UPDATE SET
        since = CASE
            WHEN extract(epoch FROM excluded.renewed_at - l.renewed_at) BETWEEN 0 AND %(ttl)s::float8 / 2
            THEN l.since ELSE excluded.renewed_at END,
        renewed_at = excluded.renewed_at, expires_at = excluded.expires_at
"""

_RUN_OUT = """
    d.expires_at < clock_timestamp() AND EXISTS (
        SELECT 1 FROM sessions_app_processlease w
        WHERE w.expires_at > clock_timestamp()
          AND w.since < clock_timestamp() - (d.expires_at - d.renewed_at))
"""
"""Of a lease `d`: there is a witness `w`."""

_GIVE_UP = f"""
    WITH dead AS (
        SELECT d.id FROM sessions_app_processlease d WHERE {_RUN_OUT} FOR UPDATE SKIP LOCKED
    ), left_over AS (
        SELECT r.session_id, r.id FROM sessions_app_record r
        WHERE r.state = 'intent' AND (
            r.lease IN (SELECT id FROM dead)
            OR r.arrived_at < clock_timestamp() - make_interval(secs => %(older)s))
        FOR UPDATE SKIP LOCKED
    )
    UPDATE sessions_app_record r SET
        state = 'lost', error_code = 'lost', finished_at = clock_timestamp(),
        error_text = 'the process that held this request ended before it was answered'
    FROM left_over l WHERE r.session_id = l.session_id AND r.id = l.id
    RETURNING r.id
"""


async def renew(db: Executor, lease: Lease) -> None:
    """Say that the process lives, also where others had given it up."""
    await db.execute(
        _RENEW,
        {
            "id": lease.id,
            "process": lease.process,
            "host": lease.host,
            "pid": lease.pid,
            "ttl": lease.ttl_s,
        },
    )


async def give_up(db: Executor, older_than_s: float) -> int:
    """Mark intents as lost whose process has died, or which are older than any process may take; how many.

    What somebody has locked is being ended just now, and left alone.
    """
    return len(await db.fetch_all(_GIVE_UP, {"older": older_than_s}))


async def forget(db: Executor) -> None:
    """Drop leases that have run out and of which no intent is left."""
    await db.execute(
        f"""
        DELETE FROM sessions_app_processlease d WHERE {_RUN_OUT} AND NOT EXISTS (
            SELECT 1 FROM sessions_app_record r WHERE r.state = 'intent' AND r.lease = d.id)
        """,
        (),
    )


async def leave(db: Executor, lease_id: int) -> None:
    """Say that the process ends: what it has not ended by itself is for others to give up, at once."""
    await db.execute(
        """
        WITH own AS (
            UPDATE sessions_app_processlease SET renewed_at = clock_timestamp(),
                expires_at = clock_timestamp()
            WHERE id = %(id)s AND EXISTS (
                SELECT 1 FROM sessions_app_record WHERE state = 'intent' AND lease = %(id)s)
            RETURNING id
        )
        DELETE FROM sessions_app_processlease WHERE id = %(id)s AND NOT EXISTS (SELECT 1 FROM own)
        """,
        {"id": lease_id},
    )


async def count(db: Executor) -> dict[str, int]:
    """How many leases are live, and how many have expired."""
    row = await db.fetch_one(
        "SELECT count(*) FILTER (WHERE expires_at > clock_timestamp()), "
        "count(*) FILTER (WHERE expires_at <= clock_timestamp()) FROM sessions_app_processlease",
        (),
    )
    assert row is not None
    return {"live": row[0], "expired": row[1]}
