"""Celery tasks of exports: thin shells around services. A second delivery of any of them does no harm."""

from celery import shared_task

from sessions_app.api.wiring import conninfo
from trainer_export.lifecycle.reaping import reap_idle


@shared_task(name="trainer_export.reap_idle")
def reap() -> int:
    """End sessions that were idle for too long."""
    return reap_idle(conninfo())
