"""What an export that ended without being published leaves at its destination.

A cancelled job leaves nothing: its shards are made again if it is resumed. A failed one keeps the shards that
are whole, hidden, for `resume`, and nothing that was begun. Invariant: nothing is taken away that somebody
writes, or that a row calls done.
"""

import asyncio
import logging

from sessions_app.store.pool import Database
from trainer_export.jobs.destinations import destination_of
from trainer_export.jobs.job import Job
from trainer_export.jobs.trace_rows import report_name
from trainer_export.jobs.values import JobState

logger = logging.getLogger(__name__)

_ENDED = """
    SELECT j.state = 'cancelled' FROM trainer_export_exportjob j
    WHERE j.id = %s AND j.state IN ('failed', 'cancelled') AND NOT EXISTS (
        SELECT 1 FROM trainer_export_exportshard x
        WHERE x.job_id = j.id AND x.state = 'running' AND x.leased_until > clock_timestamp())
    FOR UPDATE OF j SKIP LOCKED
"""
_GIVEN_UP = """
    UPDATE trainer_export_exportshard SET state = 'pending', lease = NULL, leased_until = NULL
    WHERE job_id = %s AND (state = 'running' OR (state = 'done' AND %s))
"""
_WHOLE = "SELECT name FROM trainer_export_exportshard WHERE job_id = %s AND state = 'done'"


async def clear(db: Database, job: Job) -> bool:
    """Take away what is of no use. False where the job goes on, or somebody still writes.

    The job's row is held meanwhile, so that `resume` waits; a worker that was taken for dead finds its lease
    gone.
    """
    if job.state not in (JobState.FAILED, JobState.CANCELLED) or job.frozen_at is None:
        return False
    async with db.transaction() as transaction:
        row = await transaction.fetch_one(_ENDED, (job.id,))
        if row is None:
            return False
        await transaction.execute(_GIVEN_UP, (job.id, row[0]))
        names = [name for (name,) in await transaction.fetch_all(_WHOLE, (job.id,))]
        await _remove(job, frozenset(names) | {report_name(name) for name in names})
    return True


async def _remove(job: Job, whole: frozenset[str]) -> None:
    """A destination that cannot be reached now keeps what it has, and the log says so."""
    try:
        destination = destination_of(job.destination)
        await asyncio.to_thread(destination.clear, job.folder, whole)
    except Exception as error:
        logger.warning("export %s leaves %s behind: %s", job.id.hex, job.folder, error)
