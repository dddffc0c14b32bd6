"""The same export once more: a new job with the frozen input and the rules of another, to another folder."""

from uuid import UUID, uuid4

from sessions_app.errors import InvalidArgument
from sessions_app.store.pool import Database

_JOB = """
    INSERT INTO trainer_export_exportjob (
        id, state, source, destination, format, shape, filters, rules, sessions, shard_count, rows, tokens,
        trained_tokens, cancel_requested, created_at, frozen_at)
    SELECT %(copy)s, 'running', %(source)s::text, %(destination)s::text, format, shape, filters, rules,
        sessions,
        shard_count, 0, 0, 0, false, clock_timestamp(), frozen_at
    FROM trainer_export_exportjob WHERE id = %(job)s AND frozen_at IS NOT NULL
    RETURNING id
"""
_SHARDS = """
    INSERT INTO trainer_export_exportshard (
        job_id, number, state, attempts, sessions, name, digest, size, rows, tokens, trained_tokens)
    SELECT %(copy)s, number, 'pending', 0, sessions, name, '', 0, 0, 0, 0
    FROM trainer_export_exportshard WHERE job_id = %(job)s
"""
_INPUTS = """
    INSERT INTO trainer_export_frozensession (
        job_id, shard, position, session_id, unit, rollout_id, next_seq, active_seq, finished, healer)
    SELECT %(copy)s, shard, position, session_id, unit, rollout_id, next_seq, active_seq, finished, healer
    FROM trainer_export_frozensession WHERE job_id = %(job)s
"""


async def copy_job(db: Database, job_id: UUID, destination: str, source: str) -> UUID:
    """A job that gives the same bytes as another. Raises InvalidArgument where that one has no input yet."""
    copy = uuid4()
    parameters = {"job": job_id, "copy": copy, "destination": destination, "source": source}
    async with db.transaction() as transaction:
        if await transaction.fetch_one(_JOB, parameters) is None:
            raise InvalidArgument(f"export {job_id.hex} does not exist or its input is not frozen")
        await transaction.execute(_SHARDS, parameters)
        await transaction.execute(_INPUTS, parameters)
    return copy
