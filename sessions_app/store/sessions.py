"""Sessions: create, load, finish, delete."""

import hmac
import json
from typing import Any
from uuid import UUID

from sessions_app.json_text import text_of
from sessions_app.store.pool import Database, Executor, Row
from sessions_app.store.values import NewSession, SessionSettings

_SETTINGS = """
    s.id, p.name, s.history_policy, s.on_nonlinear, s.on_truncated, s.retry_policy, s.message_matcher,
    s.healing,
    s.harness, s.sampling, s.max_context_tokens, s.max_turns, s.rollout_id, s.attempt_id, s.group_id
"""

_SELECT = f"""
    SELECT {_SETTINGS} FROM sessions_app_session s JOIN sessions_app_modelprofile p ON p.id = s.profile_id
"""

_CREATE = """
    INSERT INTO sessions_app_session (
        id, profile_id, history_policy, on_nonlinear, on_truncated, retry_policy, message_matcher, healing,
        harness,
        rollout_id, attempt_id, group_id, group_size, labels, sampling, max_context_tokens, max_turns,
        idle_timeout_s,
        key_hash, status, created_at, last_activity_at, version, next_seq, passthrough, keyless, healed_turns,
        healed_prefix_tokens, nonlinear, close_unresolved, forks, rollbacks, retries, resets, prompt_tokens,
        added_tokens, generated_tokens
    )
    SELECT %(id)s, p.id, %(history_policy)s, %(on_nonlinear)s, %(on_truncated)s, %(retry_policy)s,
        %(message_matcher)s, %(healing)s, %(harness)s, %(rollout_id)s, %(attempt_id)s, %(group_id)s,
        %(group_size)s,
        %(labels)s, %(sampling)s, %(max_context_tokens)s, %(max_turns)s, %(idle_timeout_s)s,
        %(key_hash)s, 'open',
        now(), now(), 0, 0, false, false, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
    FROM sessions_app_modelprofile p WHERE p.name = %(profile)s
    ON CONFLICT DO NOTHING
    RETURNING id
"""


def settings_from(row: Row) -> SessionSettings:
    """A row of `_SETTINGS`."""
    values: list[Any] = list(row)
    values[9] = json.loads(values[9])
    return SessionSettings(*values)


async def create(db: Executor, new: NewSession) -> bool:
    """Store a new session; False where its rollout and attempt have one already (or the profile is gone)."""
    settings = new.settings
    row = await db.fetch_one(
        _CREATE,
        {
            "id": settings.id,
            "profile": settings.profile,
            "history_policy": settings.history_policy,
            "on_nonlinear": settings.on_nonlinear,
            "on_truncated": settings.on_truncated,
            "retry_policy": settings.retry_policy,
            "message_matcher": settings.message_matcher,
            "healing": settings.healing,
            "harness": settings.harness,
            "rollout_id": settings.rollout_id,
            "attempt_id": settings.attempt_id,
            "group_id": settings.group_id,
            "group_size": new.group_size,
            "labels": text_of(dict(new.labels)),
            "sampling": text_of(dict(settings.sampling)),
            "max_context_tokens": settings.max_context_tokens,
            "max_turns": settings.max_turns,
            "idle_timeout_s": new.idle_timeout_s,
            "key_hash": new.key_hash,
        },
    )
    return row is not None


async def load_settings(db: Executor, session_id: UUID) -> SessionSettings | None:
    """Settings of a session that is not deleted."""
    row = await db.fetch_one(
        _SELECT + "WHERE s.id = %s AND s.deleted_at IS NULL",
        (session_id,),
    )
    return settings_from(row) if row else None


async def exists(db: Executor, session_id: UUID) -> bool:
    """Whether a session is there and not deleted."""
    query = "SELECT 1 FROM sessions_app_session WHERE id = %s AND deleted_at IS NULL"
    return await db.fetch_one(query, (session_id,)) is not None


async def find_by_key(db: Executor, key_hash: bytes) -> SessionSettings | None:
    """The session that a key opens."""
    row = await db.fetch_one(
        _SELECT + "WHERE s.key_hash = %s AND s.deleted_at IS NULL ORDER BY s.created_at LIMIT 1",
        (key_hash,),
    )
    return settings_from(row) if row else None


async def find_or_create_by_key(db: Database, new: NewSession) -> SessionSettings:
    """The session that a new one's key opens already, else the new one; concurrent first uses make one."""
    key_hash = new.key_hash or b""
    async with db.transaction() as transaction:
        # Held until the transaction ends, so that the loser of a race finds the winner's session.
        lock = int.from_bytes(key_hash[:8], signed=True)
        await transaction.execute("SELECT pg_advisory_xact_lock(%s)", (lock,))
        found = await find_by_key(transaction, key_hash)
        if found is None:
            await create(transaction, new)
        return found or new.settings


async def find_attempt(db: Executor, rollout_id: str, attempt_id: str) -> SessionSettings | None:
    """The session of a rollout's attempt."""
    row = await db.fetch_one(
        _SELECT + "WHERE s.rollout_id = %s AND s.attempt_id = %s AND s.deleted_at IS NULL",
        (rollout_id, attempt_id),
    )
    return settings_from(row) if row else None


async def key_opens_rollout(db: Executor, rollout_id: str, key_hash: bytes) -> bool:
    """Whether a key is that of a session of the rollout."""
    row = await db.fetch_one(
        "SELECT 1 FROM sessions_app_session WHERE rollout_id = %s AND key_hash = %s AND deleted_at IS NULL "
        "LIMIT 1",
        (rollout_id, key_hash),
    )
    return row is not None


async def replace_key(db: Executor, session_id: UUID, key_hash: bytes | None) -> bool:
    """Give a session another key, or none, and so all sessions of its rollout that had the same one; the old
    key opens none of them any longer. False: no such session.
    """
    row = await db.fetch_one(
        """
        WITH own AS (
            SELECT id, rollout_id, key_hash FROM sessions_app_session
            WHERE id = %(session)s AND deleted_at IS NULL
        ), same AS (
            SELECT id FROM own
            UNION SELECT s.id FROM sessions_app_session s
            JOIN own ON s.key_hash = own.key_hash AND s.rollout_id = own.rollout_id
        )
        UPDATE sessions_app_session SET key_hash = %(key)s WHERE id IN (SELECT id FROM same) RETURNING id
        """,
        {"session": session_id, "key": key_hash},
    )
    return row is not None


async def delete(db: Executor, session_id: UUID) -> bool:
    """Hide a session; its rows stay until retention. False where there was none to hide."""
    row = await db.fetch_one(
        """
        UPDATE sessions_app_session
        SET deleted_at = now(), status = CASE WHEN status = 'open' THEN 'closed' ELSE status END,
            finished_at = coalesce(finished_at, now()), version = version + 1
        WHERE id = %s AND deleted_at IS NULL
        RETURNING id
        """,
        (session_id,),
    )
    return row is not None


async def close(db: Executor, session_id: UUID) -> bool:
    """End a session for serving by hand. False where it is not open any more."""
    row = await db.fetch_one(
        "UPDATE sessions_app_session SET status = 'closed', finished_at = now(), version = version + 1 "
        "WHERE id = %s AND deleted_at IS NULL AND status = 'open' RETURNING id",
        (session_id,),
    )
    return row is not None


async def finish(db: Database, session_id: UUID, status: str, metadata: str | None) -> bool:
    """Close a session for serving. False where it is not open any more."""
    row = await db.fetch_one(
        """
        UPDATE sessions_app_session
        SET status = 'finished', finish_status = %s, finish_metadata = %s, finished_at = now(), version =
        version + 1
        WHERE id = %s AND deleted_at IS NULL AND status = 'open'
        RETURNING id
        """,
        (status, metadata, session_id),
    )
    return row is not None


async def key_opens(db: Executor, session_id: UUID, key_hash: bytes) -> bool:
    """Whether a key is the session's own."""
    row = await db.fetch_one(
        "SELECT key_hash FROM sessions_app_session WHERE id = %s AND deleted_at IS NULL", (session_id,)
    )
    return row is not None and row[0] is not None and hmac.compare_digest(bytes(row[0]), key_hash)
