"""Celery tasks of exports: thin shells around services. A second delivery of any of them does no harm."""

from uuid import UUID

from celery import shared_task
from django.conf import settings

from sessions_app.api.wiring import conninfo
from trainer_export.jobs.running import look_at, unfinished_jobs
from trainer_export.lifecycle.reaping import reap_idle
from trainer_export.renderers import profile_renderer


@shared_task(name="trainer_export.reap_idle")
def reap() -> int:
    """End sessions that were idle for too long."""
    return reap_idle(conninfo())


@shared_task(name="trainer_export.look")
def look(job_id: str) -> str:
    """Do what there is to do on an export; its state afterwards."""
    job = look_at(conninfo(), settings.TITO, profile_renderer, UUID(job_id))
    return str(job.state) if job else "gone"


@shared_task(name="trainer_export.patrol")
def patrol() -> int:
    """Send workers to exports that nobody works on: lost messages, dead workers, retries that are due."""
    found = unfinished_jobs(conninfo())
    for job_id in found:
        look.delay(job_id.hex)
    return len(found)
