"""Sessions as senders of spans name them: deleted ones too, for spans are sent seconds after they ended."""

from dataclasses import dataclass
from uuid import UUID

from sessions_app.store.pool import Executor

_COLUMNS = "SELECT id, rollout_id FROM sessions_app_session"
_LIVING_FIRST = "ORDER BY deleted_at IS NOT NULL, created_at DESC LIMIT 1"


@dataclass(frozen=True, slots=True)
class TraceTarget:
    """A session that spans can go to."""

    session_id: UUID
    rollout_id: str | None


async def target_of_key(db: Executor, key_hash: bytes) -> TraceTarget | None:
    """The session that a key opens, or opened."""
    return await _first(
        db, "WHERE key_hash = %s ORDER BY deleted_at IS NOT NULL, created_at LIMIT 1", (key_hash,)
    )


async def target_of_session(db: Executor, session_id: UUID) -> TraceTarget | None:
    """A session by its id."""
    return await _first(db, "WHERE id = %s", (session_id,))


async def target_of_attempt(db: Executor, rollout_id: str, attempt_id: str | None) -> TraceTarget | None:
    """The session of an attempt; without an attempt id that of the newest one."""
    return await _first(
        db,
        f"WHERE rollout_id = %s AND (%s::text IS NULL OR attempt_id = %s) {_LIVING_FIRST}",
        (rollout_id, attempt_id, attempt_id),
    )


async def _first(db: Executor, condition: str, parameters: tuple[object, ...]) -> TraceTarget | None:
    row = await db.fetch_one(f"{_COLUMNS} {condition}", parameters)
    return TraceTarget(*row) if row else None
