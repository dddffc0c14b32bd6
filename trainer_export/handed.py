"""The ledger of rows handed to training: entered when they go out, marked stale when more becomes known."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sessions_app.store.pool import Executor

_LONGEST_STATUS = 20
"""Hooks may say what they like."""

_STALE = """
    UPDATE trainer_export_sample SET stale_at = clock_timestamp(), stale_reason = %s
    WHERE session_id = %s AND stale_at IS NULL
"""
_ENTER = """
    INSERT INTO trainer_export_sample (
        session_id, sample_id, leaf_seq, next_seq, rollout_id, group_id, via, job_id, status, tokens,
        trained_tokens, reward, handed_at, stale_at, stale_reason)
    SELECT t.session, t.sample, t.leaf, t.next_seq, t.rollout, t.grouped, %(via)s, %(job)s::uuid, t.status,
        t.tokens, t.trained, t.reward, clock_timestamp(),
        CASE WHEN late.reason IS NOT NULL THEN clock_timestamp() END, late.reason
    FROM unnest(%(sessions)s::uuid[], %(samples)s::text[], %(leaves)s::int[], %(next_seqs)s::int[],
                %(rollouts)s::text[], %(groups)s::text[], %(statuses)s::text[], %(tokens)s::int[],
                %(trained)s::int[], %(rewards)s::float8[])
        AS t (session, sample, leaf, next_seq, rollout, grouped, status, tokens, trained, reward)
    JOIN sessions_app_session s ON s.id = t.session
    CROSS JOIN LATERAL (SELECT CASE
        WHEN EXISTS (SELECT 1 FROM sessions_app_reward r
            WHERE r.session_id = s.id AND r.created_at > %(as_of)s) THEN 'reward'
        WHEN s.finish_status IS NOT NULL AND s.finished_at > %(as_of)s THEN 'finish' END) late (reason)
    ORDER BY t.session, t.sample
    ON CONFLICT (session_id, sample_id) DO UPDATE SET
        next_seq = excluded.next_seq, via = excluded.via, job_id = excluded.job_id, status = excluded.status,
        tokens = excluded.tokens, trained_tokens = excluded.trained_tokens, reward = excluded.reward,
        handed_at = excluded.handed_at, stale_at = excluded.stale_at, stale_reason = excluded.stale_reason
"""


@dataclass(frozen=True, slots=True)
class Handed:
    """A row that goes out."""

    session_id: UUID
    sample_id: str
    leaf: int
    next_seq: int
    """Nodes of the session that were looked at."""
    rollout_id: str
    group_id: str | None
    status: str
    tokens: int
    trained: int
    reward: float | None


async def moment(db: Executor) -> datetime:
    """The database's clock: what is reported from now on, rows that are read now may not know."""
    row = await db.fetch_one("SELECT clock_timestamp()", ())
    assert row is not None
    now: datetime = row[0]
    return now


async def enter(
    db: Executor, rows: Sequence[Handed], via: str, as_of: datetime, job: UUID | None = None
) -> None:
    """Note what goes out, as it was known at a moment; rows that went out before are fresh again, unless more
    was reported while they were made.
    """
    if rows:
        await db.execute(_ENTER, _columns(rows) | {"via": via, "job": job, "as_of": as_of})


def _columns(rows: Sequence[Handed]) -> dict[str, object]:
    return {
        "sessions": [row.session_id for row in rows],
        "samples": [row.sample_id for row in rows],
        "leaves": [row.leaf for row in rows],
        "next_seqs": [row.next_seq for row in rows],
        "rollouts": [row.rollout_id for row in rows],
        "groups": [row.group_id for row in rows],
        "statuses": [row.status[:_LONGEST_STATUS] for row in rows],
        "tokens": [row.tokens for row in rows],
        "trained": [row.trained for row in rows],
        "rewards": [row.reward for row in rows],
    }


async def mark_stale(db: Executor, session_id: UUID, reason: str) -> None:
    """What was handed out of a session does not know of this."""
    await db.execute(_STALE, (reason, session_id))
