"""The input of a job, frozen: which sessions at which node, in which shard, in an order that never changes.

One transaction: a job has all of its input or none. Rollout groups are kept together, and the rollouts of a
group.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sessions_app.errors import InvalidArgument
from sessions_app.json_text import text_of
from sessions_app.store.pool import Database, Transaction
from trainer_export.jobs.filtering import as_version
from trainer_export.jobs.filters import Filters, conditions
from trainer_export.jobs.job import Job

_CANDIDATES = """
    WITH chosen AS (
        SELECT s.id, p.name AS profile, coalesce(s.rollout_id, replace(s.id::text, '-', '')) AS rollout,
            s.group_id, s.next_seq, s.active_seq, s.finish_status, s.created_at, s.healed_turns,
            s.healed_prefix_tokens, s.nonlinear, s.close_unresolved,
            s.added_tokens + s.generated_tokens AS tokens
        FROM sessions_app_session s JOIN sessions_app_modelprofile p ON p.id = s.profile_id
        WHERE {condition}
    ), keyed AS (
        SELECT c.*, CASE WHEN group_id IS NULL THEN 'r:' || rollout ELSE 'g:' || group_id END AS unit
        FROM chosen c
    )
    SELECT id, unit, rollout, next_seq, active_seq, finish_status IS NOT NULL, healed_turns,
        healed_prefix_tokens, nonlinear, close_unresolved, tokens, profile
    FROM keyed
    ORDER BY min(created_at) OVER (PARTITION BY unit), unit,
        min(created_at) OVER (PARTITION BY unit, rollout), rollout, created_at, id
"""
_INPUTS = """
    INSERT INTO trainer_export_frozensession (
        job_id, shard, position, session_id, unit, rollout_id, next_seq, active_seq, finished, healer)
    SELECT %(job)s, t.shard, t.position, t.session, t.unit, t.rollout, t.next_seq, t.active, t.finished,
        t.healer
    FROM unnest(%(shards)s::int[], %(positions)s::int[], %(sessions)s::uuid[], %(units)s::text[],
                %(rollouts)s::text[], %(next_seqs)s::int[], %(actives)s::int[], %(finished)s::bool[],
                %(healers)s::text[])
        AS t (shard, position, session, unit, rollout, next_seq, active, finished, healer)
"""
_SHARDS = """
    INSERT INTO trainer_export_exportshard (
        job_id, number, state, attempts, sessions, name, digest, size, rows, tokens, trained_tokens)
    SELECT %(job)s, t.number, 'pending', 0, t.sessions, t.name, '', 0, 0, 0, 0
    FROM unnest(%(numbers)s::int[], %(sessions)s::int[], %(names)s::text[]) AS t (number, sessions, name)
"""
_FROZEN = """
    UPDATE trainer_export_exportjob
    SET state = 'running', frozen_at = %s, sessions = %s, shard_count = %s, rules = %s WHERE id = %s
"""
_WEIGHTS = "SELECT name, weight_version FROM sessions_app_modelprofile WHERE name = ANY(%s)"
_LOCK = "SELECT state, cancel_requested FROM trainer_export_exportjob WHERE id = %s FOR UPDATE"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A session that the filters let through, as it stands."""

    id: UUID
    unit: str
    rollout: str
    next_seq: int
    active_seq: int | None
    finished: bool
    """`finish` was called: what it said counts."""
    healer: tuple[int, int, int, int]
    tokens: int
    """Stored deltas: how much there is to read."""
    profile: str


def candidate_of(row: Sequence[Any]) -> Candidate:
    """A row of `_CANDIDATES`."""
    plain, healer, (tokens, profile) = row[:6], row[6:10], row[10:]
    values: list[Any] = [*plain, tuple(healer), tokens, profile]
    return Candidate(*values)


def sharded(candidates: Iterable[Candidate], shard_tokens: int) -> list[list[Candidate]]:
    """Consecutive whole units; a shard is closed once it holds `shard_tokens`."""
    shards: list[list[Candidate]] = []
    held = 0
    for candidate in candidates:
        continues = bool(shards) and shards[-1][-1].unit == candidate.unit
        if not shards or (held >= shard_tokens and not continues):
            shards.append([])
            held = 0
        shards[-1].append(candidate)
        held += candidate.tokens
    return shards


async def freeze(db: Database, job: Job) -> bool:
    """Freeze a pending job's input. False where somebody else did, or it was cancelled before."""
    moment = await quiet_moment(db)
    async with db.transaction() as transaction:
        row = await transaction.fetch_one(_LOCK, (job.id,))
        if row is None or row[0] != "pending" or row[1]:
            return False
        candidates = await find(transaction, job.filters)
        shards = sharded(candidates, job.rules.shard_tokens)
        if candidates:
            await transaction.execute(_INPUTS, _inputs(job.id, shards))
            await transaction.execute(_SHARDS, _shards(job, shards))
        rules = job.rules.as_json()
        if job.filters.max_staleness is not None:
            rules["weights_now"] = await _weights(transaction, {one.profile for one in candidates})
        await transaction.execute(_FROZEN, (moment, len(candidates), len(shards), text_of(rules), job.id))
    return True


async def quiet_moment(db: Database) -> datetime:
    """A moment before which every reward is committed, and after which none is dated before it."""
    async with db.transaction() as transaction:
        await transaction.execute("LOCK TABLE sessions_app_reward IN SHARE MODE", ())
        row = await transaction.fetch_one("SELECT clock_timestamp()", ())
    assert row is not None
    moment: datetime = row[0]
    return moment


async def _weights(transaction: Transaction, profiles: set[str]) -> dict[str, int]:
    """What each profile serves now, as a number. Raises InvalidArgument where it names none."""
    found = {}
    for name, text in await transaction.fetch_all(_WEIGHTS, (sorted(profiles),)):
        version = as_version(text)
        if version is None:
            raise InvalidArgument(f"max_staleness: profile {name!r} names no numeric weight version")
        found[name] = version
    return found


async def find(transaction: Transaction, filters: Filters) -> list[Candidate]:
    """The sessions that the filters let through, in the order of export."""
    condition, parameters = conditions(filters)
    rows = await transaction.fetch_all(_CANDIDATES.format(condition=condition), parameters)
    return [candidate_of(row) for row in rows]


def _inputs(job: UUID, shards: Sequence[Sequence[Candidate]]) -> dict[str, Any]:
    numbered = [(number, one) for number, shard in enumerate(shards) for one in shard]
    return {
        "job": job,
        "shards": [number for number, _ in numbered],
        "positions": list(range(len(numbered))),
        "sessions": [one.id for _, one in numbered],
        "units": [one.unit for _, one in numbered],
        "rollouts": [one.rollout for _, one in numbered],
        "next_seqs": [one.next_seq for _, one in numbered],
        "actives": [one.active_seq for _, one in numbered],
        "finished": [one.finished for _, one in numbered],
        "healers": [text_of(list(one.healer)) for _, one in numbered],
    }


def _shards(job: Job, shards: Sequence[Sequence[Candidate]]) -> dict[str, Any]:
    return {
        "job": job.id,
        "numbers": list(range(len(shards))),
        "sessions": [len(shard) for shard in shards],
        "names": [shard_name(number, len(shards), job.format) for number in range(len(shards))],
    }


def shard_name(number: int, count: int, format: str) -> str:
    """File name of a shard; sorts as the shards do."""
    return f"shard-{number:05d}-of-{count:05d}.{format}"
