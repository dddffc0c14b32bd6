"""A worker's look at a job: freeze what is not frozen, write what is not written, publish when all is there.

Any number of workers may look at the same job at any time, and each may die at any moment; the next look goes
on where the rows say. Nothing is visible at the destination until every shard is.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from sessions_app.errors import TitoError
from sessions_app.rendering.protocol import Renderer
from sessions_app.store.pool import LOST_CONNECTION, Database
from tito_project.configuration import Configuration
from trainer_export.jobs import job as jobs
from trainer_export.jobs.clearing import clear
from trainer_export.jobs.destinations import Destination, destination_of
from trainer_export.jobs.freeze import freeze
from trainer_export.jobs.job import Claim, Job
from trainer_export.jobs.publish import publish
from trainer_export.jobs.rows import Making
from trainer_export.jobs.shard import Stopped, write_shard
from trainer_export.jobs.values import JobState
from trainer_export.samples.hooks import resolve_hooks

logger = logging.getLogger(__name__)

_WAIT_S = 10.0
"""Before a shard is tried again after an error, times the attempts so far."""


JobProgress = Callable[[int, int, int], None]
"""Told after each batch: sessions and tokens done since the last time, sessions of the whole job."""


@dataclass(frozen=True, slots=True)
class Workshop:
    """What a worker brings along."""

    db: Database
    configuration: Configuration
    renderer_of: Callable[[str], Renderer]
    progress: JobProgress = lambda sessions, tokens, total: None
    call_help: Callable[[int], None] = lambda shards: None
    """Told how many shards there are once they are known: other workers may look, too."""
    patient: bool = True
    """Wait before trying again; False: whoever looks on is a person, who wants to know."""


async def look(workshop: Workshop, job_id: UUID) -> Job | None:
    """Do what there is to do on a job; the job as it then is, None where there is none."""
    job = await jobs.load(workshop.db, job_id)
    if job is not None and job.state in (JobState.PENDING, JobState.RUNNING):
        await _go_on(workshop, job)
        await jobs.end_if_due(workshop.db, job_id)
        job = await jobs.load(workshop.db, job_id)
    if job is not None:
        await clear(workshop.db, job)
    return job


async def _go_on(workshop: Workshop, known: Job) -> None:
    """As far as it goes; what stops it for good is in its row."""
    try:
        destination = destination_of(known.destination)
        job = await _frozen(workshop, known)
        if job is not None and job.state is JobState.RUNNING:
            await _write(workshop, job, destination)
            await publish(workshop.db, job, destination)
    except LOST_CONNECTION:
        raise
    except TitoError as error:
        await jobs.fail(workshop.db, known.id, str(error))
    except Exception as error:
        logger.warning("export %s: %s", known.id.hex, error, exc_info=True)
        await jobs.fail(workshop.db, known.id, f"{type(error).__name__}: {error}"[:2000])


async def _frozen(workshop: Workshop, job: Job) -> Job | None:
    """The job with its input frozen, by whomever."""
    if job.state is not JobState.PENDING:
        return job
    await freeze(workshop.db, job)
    found = await jobs.load(workshop.db, job.id)
    if found is not None:
        workshop.call_help(found.shard_count or 0)
    return found


async def _write(workshop: Workshop, job: Job, destination: Destination) -> None:
    making = _making(workshop, job)
    while claim := await jobs.claim(workshop.db, job.id):
        await _write_one(workshop, job, claim, destination, making)


def _making(workshop: Workshop, job: Job) -> Making:
    return Making(
        configuration=workshop.configuration,
        renderer_of=workshop.renderer_of,
        hooks=resolve_hooks(job.rules.picker, job.rules.postprocessor),
        rules=job.rules,
        filters=job.filters,
        weights_now=job.weights_now,
        frozen_at=job.frozen_at,
    )


async def _write_one(
    workshop: Workshop, job: Job, claim: Claim, destination: Destination, making: Making
) -> None:
    def progress(sessions: int, tokens: int) -> None:
        workshop.progress(sessions, tokens, job.sessions or 0)

    try:
        await write_shard(workshop.db, job, claim, destination, making, progress)
    except Stopped:
        await jobs.release(workshop.db, claim, None, 0)
    except Exception as error:
        logger.warning("shard %s of export %s: %s", claim.name, job.id.hex, error)
        wait_s = _WAIT_S * claim.attempts if workshop.patient else 0
        await jobs.release(workshop.db, claim, f"{type(error).__name__}: {error}"[:2000], wait_s)
