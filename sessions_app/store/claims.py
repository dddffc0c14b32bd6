"""Who answers a request that may come twice: claims on idempotency keys, and earlier requests with the
same body.

A claim is one row per session and key. Whoever inserts it generates; everybody else waits for that record
or replays it. Invariant: two processes never both believe that a live claim is theirs.
"""

from dataclasses import dataclass
from uuid import UUID

from sessions_app.store.pool import Executor

_ACQUIRE = """
    INSERT INTO sessions_app_idempotencyclaim AS c (session_id, key, request_hash, record_id, expires_at)
    VALUES (%(session)s, %(key)s, %(hash)s, NULL, clock_timestamp() + make_interval(secs => %(ttl)s))
    ON CONFLICT (session_id, key) DO UPDATE
        SET request_hash = excluded.request_hash, record_id = NULL, expires_at = excluded.expires_at
        WHERE c.expires_at < clock_timestamp()
           OR (c.record_id IS NULL
               AND c.expires_at < clock_timestamp() + make_interval(secs => %(ttl)s - %(grace)s))
           OR c.record_id IN (
                SELECT r.id FROM sessions_app_record r
                WHERE r.session_id = %(session)s AND r.id = c.record_id
                  AND (r.state IN ('refused', 'upstream_error', 'cancelled', 'lost')
                       OR r.state = 'late' AND r.error_code IS NOT NULL))
    RETURNING true
"""

_ANSWERED = """
    (r.state IN ('committed', 'confirmed', 'late') AND r.error_code IS NULL)
"""
"""Its reply can be replayed."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """The record that answers, or is about to answer, the same request."""

    record_id: int | None
    """None: claimed, and its record is not written yet."""
    answered: bool
    """Its reply can be replayed."""
    node_seq: int | None
    request_hash: bytes


async def acquire(
    db: Executor, session_id: UUID, key: str, request_hash: bytes, *, ttl_s: float, grace_s: float
) -> bool:
    """Take a key: True when this request is to generate.

    Expired claims, claims of failed requests, and claims without a record after `grace_s` are taken over.
    """
    row = await db.fetch_one(
        _ACQUIRE,
        {"session": session_id, "key": key, "hash": request_hash, "ttl": ttl_s, "grace": grace_s},
    )
    return row is not None


async def holder(db: Executor, session_id: UUID, key: str) -> Earlier | None:
    """The record that a key belongs to; None when the key has become free."""
    row = await db.fetch_one(
        f"SELECT c.record_id, coalesce({_ANSWERED}, false), r.node_seq, c.request_hash "
        "FROM sessions_app_idempotencyclaim c "
        "LEFT JOIN sessions_app_record r ON r.session_id = c.session_id AND r.id = c.record_id "
        "WHERE c.session_id = %s AND c.key = %s",
        (session_id, key),
    )
    return Earlier(row[0], row[1], row[2], bytes(row[3])) if row else None


async def settle(db: Executor, session_id: UUID, key: str, record_id: int) -> None:
    """Name the record that a claim stands for, unless another request has taken the claim over."""
    await db.execute(
        "UPDATE sessions_app_idempotencyclaim SET record_id = %s "
        "WHERE session_id = %s AND key = %s AND record_id IS NULL",
        (record_id, session_id, key),
    )


async def renew(db: Executor, session_id: UUID, key: str, *, ttl_s: float) -> None:
    """Say that the request of a claim without a record is alive."""
    await db.execute(
        "UPDATE sessions_app_idempotencyclaim SET expires_at = clock_timestamp() + make_interval(secs => %s) "
        "WHERE session_id = %s AND key = %s AND record_id IS NULL",
        (ttl_s, session_id, key),
    )


async def release(db: Executor, session_id: UUID, key: str) -> None:
    """Free a key whose request came to nothing before it had a record.

    The state of a record frees its key by itself: then the claim may be another request's by now.
    """
    await db.execute(
        "DELETE FROM sessions_app_idempotencyclaim WHERE session_id = %s AND key = %s AND record_id IS NULL",
        (session_id, key),
    )


async def same_body(
    db: Executor, session_id: UUID, request_hash: bytes, *, window_s: float
) -> Earlier | None:
    """The latest request with the same body that was answered, in a window."""
    row = await db.fetch_one(
        "SELECT r.id, true, r.node_seq, r.request_hash FROM sessions_app_record r "
        f"WHERE r.session_id = %s AND r.request_hash = %s AND {_ANSWERED} "
        "AND r.arrived_at > clock_timestamp() - make_interval(secs => %s) ORDER BY r.id DESC LIMIT 1",
        (session_id, request_hash, window_s),
    )
    return _earlier(row)


def _earlier(row: tuple[int, bool, int | None, bytes] | None) -> Earlier | None:
    return Earlier(row[0], row[1], row[2], bytes(row[3])) if row else None
