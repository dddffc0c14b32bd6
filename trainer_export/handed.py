"""The ledger of rows handed to training: entered when they go out, marked stale when more becomes known.

Invariant: a row that does not know of a reward or a finish is marked stale, whichever of the two commits
first. Who reports locks the session row against who enters (`FOR UPDATE` against `FOR KEY SHARE`, which no
turn waits for), before anything else of the session: whoever comes second sees what the first wrote.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sessions_app.json_text import storable
from sessions_app.store.pool import Transaction

_LONGEST_STATUS = 20
"""Hooks may say what they like."""

_LOCK_TO_REPORT = "SELECT 1 FROM sessions_app_session WHERE id = %s FOR UPDATE"
_LOCK_TO_ENTER = "SELECT 1 FROM sessions_app_session WHERE id = ANY(%s) ORDER BY id FOR KEY SHARE"
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
                %(trained)s::int[], %(rewards)s::float8[], %(known_rewards)s::int[],
                %(known_finishes)s::bool[])
        AS t (session, sample, leaf, next_seq, rollout, grouped, status, tokens, trained, reward,
              known_rewards, known_finish)
    JOIN sessions_app_session s ON s.id = t.session
    CROSS JOIN LATERAL (SELECT CASE
        WHEN (SELECT count(*) FROM sessions_app_reward r WHERE r.session_id = s.id) > t.known_rewards
            THEN 'reward'
        WHEN s.finish_status IS NOT NULL AND NOT t.known_finish THEN 'finish' END) late (reason)
    ORDER BY t.session, t.sample
    ON CONFLICT (session_id, sample_id) DO UPDATE SET
        next_seq = excluded.next_seq, via = excluded.via, job_id = excluded.job_id, status = excluded.status,
        tokens = excluded.tokens, trained_tokens = excluded.trained_tokens, reward = excluded.reward,
        handed_at = excluded.handed_at, stale_at = excluded.stale_at, stale_reason = excluded.stale_reason
"""


@dataclass(frozen=True, slots=True)
class Known:
    """What of its session a row was made of."""

    next_seq: int
    """Nodes that were looked at."""
    rewards: int
    """Rewards of the session and of any of its nodes."""
    finish: bool
    """What `finish` said."""


@dataclass(frozen=True, slots=True)
class Handed:
    """A row that goes out."""

    session_id: UUID
    sample_id: str
    leaf: int
    known: Known
    rollout_id: str
    group_id: str | None
    status: str
    tokens: int
    trained: int
    reward: float | None


async def enter(transaction: Transaction, rows: Sequence[Handed], via: str, job: UUID | None = None) -> None:
    """Note what goes out; rows that went out before are fresh again, unless more was reported while they were
    made.
    """
    if rows:
        await transaction.execute(_LOCK_TO_ENTER, (sorted({row.session_id for row in rows}),))
        await transaction.execute(_ENTER, _columns(rows) | {"via": via, "job": job})


def _columns(rows: Sequence[Handed]) -> dict[str, object]:
    return {
        "sessions": [row.session_id for row in rows],
        "samples": [row.sample_id for row in rows],
        "leaves": [row.leaf for row in rows],
        "next_seqs": [row.known.next_seq for row in rows],
        "rollouts": [row.rollout_id for row in rows],
        "groups": [row.group_id for row in rows],
        "statuses": [storable(row.status)[:_LONGEST_STATUS] for row in rows],
        "tokens": [row.tokens for row in rows],
        "trained": [row.trained for row in rows],
        "rewards": [row.reward for row in rows],
        "known_rewards": [row.known.rewards for row in rows],
        "known_finishes": [row.known.finish for row in rows],
    }


async def lock_to_report(transaction: Transaction, session_id: UUID) -> None:
    """To be called before what is reported is written: nobody enters rows of the session until it is."""
    await transaction.execute(_LOCK_TO_REPORT, (session_id,))


async def mark_stale(transaction: Transaction, session_id: UUID, reason: str) -> None:
    """What was handed out of a session does not know of this."""
    await transaction.execute(_STALE, (reason, session_id))
