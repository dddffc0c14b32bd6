"""Celery tasks of exports: thin shells around services. A second delivery of any of them does no harm."""

import logging
from datetime import UTC, datetime
from uuid import UUID

from celery import shared_task
from django.conf import settings
from kombu.exceptions import OperationalError

from sessions_app.api.wiring import conninfo
from sessions_app.store.pool import Database
from trainer_export.jobs.periodic import create_periodic
from trainer_export.jobs.running import look_at, on_loop, unfinished_jobs
from trainer_export.lifecycle.reaping import reap_idle
from trainer_export.renderers import profile_renderer
from trainer_export.retention import Retention, apply
from trainer_export.spans.labelling import label_due

logger = logging.getLogger(__name__)

_HELPERS = 7
"""Most workers called to one export beside the one that is there."""


@shared_task(name="trainer_export.reap_idle")
def reap() -> int:
    """End sessions that were idle for too long."""
    return reap_idle(conninfo())


@shared_task(name="trainer_export.label")
def label() -> int:
    """Place spans that waited for their trace, hand agent names to nodes."""
    return on_loop(conninfo(), label_due)


@shared_task(name="trainer_export.look")
def look(job_id: str) -> str:
    """Do what there is to do on an export; its state afterwards."""

    def call_help(shards: int) -> None:
        for _ in range(min(shards - 1, _HELPERS)):
            send_workers(job_id)

    job = look_at(conninfo(), settings.TITO, profile_renderer, UUID(job_id), call_help=call_help)
    return str(job.state) if job else "gone"


@shared_task(name="trainer_export.patrol")
def patrol() -> int:
    """Send workers to exports that nobody works on: lost messages, dead workers, retries that are due."""
    found = unfinished_jobs(conninfo())
    for job_id in found:
        send_workers(job_id.hex)
    return len(found)


@shared_task(name="trainer_export.periodic")
def periodic() -> str | None:
    """The export that is due by TITO_EXPORT_EVERY_S; its id, None where there is nothing to do."""

    async def create(db: Database) -> UUID | None:
        return await create_periodic(db, settings.TITO, datetime.now(UTC))

    if settings.TITO.export_every_s is None:
        return None
    job_id = on_loop(conninfo(), create)
    if job_id is not None:
        send_workers(job_id.hex)
    return job_id.hex if job_id else None


@shared_task(name="trainer_export.retire")
def retire() -> int:
    """Let go of what is older than TITO_RETENTION_DAYS and was handed to training."""
    days = settings.TITO.retention_days
    return apply(conninfo(), Retention(days)).sessions if days is not None else 0


def send_workers(job_id: str) -> bool:
    """Say "look" to the workers; False where the broker is away, and the patrol will."""
    try:
        look.apply_async((job_id,), retry=False)
    except OperationalError as error:
        logger.warning("export %s waits for the patrol: %s", job_id, error)
        return False
    return True
