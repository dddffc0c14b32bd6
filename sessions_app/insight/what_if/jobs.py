"""Replays as jobs: the row is the truth, a message to a worker only says "look".

Invariant: a job belongs to the worker whose lease it has. A worker renews its lease with every session; where
one dies, the lease runs out and another worker begins the job again.
"""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db.models import F, Q, QuerySet
from django.utils import timezone

from sessions_app.errors import TitoError
from sessions_app.insight.what_if.report import Report
from sessions_app.insight.what_if.running import RendererOf, World, run
from sessions_app.insight.what_if.wanted import Wanted, chosen, restored
from sessions_app.json_text import text_of
from sessions_app.models import WhatIfJob

LEASE = timedelta(minutes=5)
"""Longer than the largest session takes."""
MOST_ATTEMPTS = 3
_WAITED = timedelta(minutes=1)
"""A job that waits for longer has had its message lost."""
_RENEWED_AFTER = timedelta(seconds=2)


class Cancelled(Exception):
    """An operator asked for the job to end."""


class LeaseLost(Exception):
    """Another worker has taken the job."""


def ask(wanted: Wanted, asked_by: str) -> WhatIfJob:
    """A new job, waiting for a worker."""
    return WhatIfJob.objects.create(
        wanted=json.dumps(wanted.as_json()), asked_by=asked_by[:150], created_at=timezone.now()
    )


def cancel(job: WhatIfJob) -> None:
    """Ask a job to end; one that has not begun ends at once."""
    WhatIfJob.objects.filter(pk=job.pk).update(cancel_requested=True)
    WhatIfJob.objects.filter(pk=job.pk, state="pending").update(state="cancelled", finished_at=timezone.now())


def unattended() -> list[UUID]:
    """Jobs that nobody works on though there is something to do: lost messages, dead workers."""
    now = timezone.now()
    waiting = Q(state="pending", created_at__lt=now - _WAITED)
    rows = WhatIfJob.objects.filter(waiting | _left(now)).order_by("created_at")
    return list(rows.values_list("pk", flat=True)[:100])


def _left(now: datetime) -> Q:
    """Left behind by a worker."""
    return Q(state="running") & (Q(leased_until__lt=now) | Q(leased_until__isnull=True))


def execute(
    job_id: UUID, world: World, counting: Callable[[Wanted], RendererOf], as_document: Callable[[Report], Any]
) -> str:
    """Run a job to its end; its state. A job that ended or that another worker runs is left alone.

    `counting`: what to count ids with. `as_document`: turns a report into JSON types.
    """
    job = _taken(job_id)
    if job is None:
        return "left alone"
    if job.attempts > MOST_ATTEMPTS:
        return _end(job, "failed", error_text=f"{MOST_ATTEMPTS} workers ended before it did")
    try:
        report = _run(job, world, counting)
    except Cancelled:
        return _end(job, "cancelled")
    except LeaseLost:
        return "left alone"
    except (ValueError, TitoError) as error:
        return _end(job, "failed", error_text=str(error))
    return _end(job, "done", report=text_of(as_document(report)))


def _taken(job_id: UUID) -> WhatIfJob | None:
    """The job, under a lease of this worker's own."""
    now, lease = timezone.now(), uuid4()
    taken = WhatIfJob.objects.filter(Q(state="pending") | _left(now), pk=job_id).update(
        state="running", lease=lease, leased_until=now + LEASE, attempts=F("attempts") + 1, done=0
    )
    return WhatIfJob.objects.get(pk=job_id) if taken else None


def _run(job: WhatIfJob, world: World, counting: Callable[[Wanted], RendererOf]) -> Report:
    wanted = restored(json.loads(job.wanted))
    ids = chosen(wanted)
    _held(job).update(total=len(ids))
    renewed = timezone.now() - _RENEWED_AFTER

    def progress(done: int, total: int) -> None:
        nonlocal renewed
        now = timezone.now()
        if now - renewed >= _RENEWED_AFTER or done == total:
            _renew(job, done, now)
            renewed = now

    return run(ids, wanted.changes, world, counting(wanted), progress)


def _renew(job: WhatIfJob, done: int, now: datetime) -> None:
    if not _held(job).update(done=done, leased_until=now + LEASE):
        raise LeaseLost
    if _held(job).filter(cancel_requested=True).exists():
        raise Cancelled


def _held(job: WhatIfJob) -> "QuerySet[WhatIfJob]":
    """The job's row, as long as this worker's lease holds."""
    return WhatIfJob.objects.filter(pk=job.pk, state="running", lease=job.lease)


def _end(job: WhatIfJob, state: str, **values: Any) -> str:
    over = {"state": state, "finished_at": timezone.now(), "lease": None, "leased_until": None}
    return state if _held(job).update(**over, **values) else "left alone"
