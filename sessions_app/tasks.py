"""Celery tasks of the serving side: thin shells around services."""

import logging
from uuid import UUID

from celery import shared_task
from django.conf import settings

from sessions_app.api.wiring import configured, conninfo, renderer_of
from sessions_app.auditing import reads
from sessions_app.auditing.drift import Scope, audit
from sessions_app.insight.what_if import jobs
from sessions_app.turns.recover import settle_dangling

logger = logging.getLogger(__name__)

_AUDIT_S = 60.0
"""Longest run of one audit; well below the pause between two."""
_AT_REST_S = 120.0


@shared_task(name="sessions_app.recover")
def recover() -> int:
    """Settle requests of processes that ended."""
    return settle_dangling(conninfo(), settings.TITO.engine_timeout + 60)


@shared_task(name="sessions_app.drift_audit")
def drift_audit() -> dict[str, int]:
    """Compare leaves of sessions at rest with fresh renders, a bounded number at a time."""
    limit = settings.TITO.drift_audit_nodes
    if not limit:
        return {}
    scope = Scope(limit=limit, seconds=_AUDIT_S, quiet_s=_AT_REST_S)
    done = audit(lambda profile: renderer_of(configured(settings.TITO, profile)), scope)
    for name, why in done.unavailable.items():
        logger.warning("drift audit: profile %r is left out: %s", name, why)
    return dict(done.outcomes)


@shared_task(name="sessions_app.forget_reads")
def forget_reads() -> int:
    """Let go of old notes of who read what in the admin."""
    return reads.forget(settings.TITO.audit_days)


@shared_task(name="sessions_app.what_if_patrol")
def what_if_patrol() -> int:
    """Send workers to replays that nobody works on: lost messages, dead workers."""
    found = jobs.unattended()
    for job_id in found:
        what_if.apply_async((job_id.hex,), retry=False)
    return len(found)


@shared_task(name="sessions_app.what_if")
def what_if(job_id: str) -> str:
    """Replay stored requests under other settings."""
    from sessions_app.admin import readers, twin  # the screens' own; not loaded before the applications are

    return jobs.execute(UUID(job_id), readers.world(), readers.counting_renderer, twin.plain)
