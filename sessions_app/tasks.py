"""Celery tasks of the serving side: thin shells around services."""

from celery import shared_task
from django.conf import settings

from sessions_app.api.wiring import conninfo
from sessions_app.turns.recover import settle_dangling


@shared_task(name="sessions_app.recover")
def recover() -> int:
    """Settle requests of processes that ended."""
    return settle_dangling(conninfo(), settings.TITO.engine_timeout + 60)
