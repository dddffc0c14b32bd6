"""Replays as jobs: the row is the truth, a message to a worker only says "look".

Invariant: a job is run by one worker at a time, and one that a worker left behind is found by its state.
"""

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from sessions_app.errors import TitoError
from sessions_app.insight.what_if.report import Report
from sessions_app.insight.what_if.running import RendererOf, World, run
from sessions_app.insight.what_if.wanted import Wanted, chosen, restored
from sessions_app.json_text import text_of
from sessions_app.models import WhatIfJob

_PROGRESS_EVERY = 5
"""Sessions between two updates of the row."""


class Cancelled(Exception):
    """An operator asked for the job to end."""


def ask(wanted: Wanted, asked_by: str) -> WhatIfJob:
    """A new job, waiting for a worker."""
    return WhatIfJob.objects.create(
        wanted=json.dumps(wanted.as_json()), asked_by=asked_by[:150], created_at=timezone.now()
    )


def cancel(job: WhatIfJob) -> None:
    """Ask a job to end; one that has not begun ends at once."""
    WhatIfJob.objects.filter(pk=job.pk).update(cancel_requested=True)
    WhatIfJob.objects.filter(pk=job.pk, state="pending").update(state="cancelled", finished_at=timezone.now())


def execute(
    job_id: UUID, world: World, counting: Callable[[Wanted], RendererOf], as_document: Callable[[Report], Any]
) -> str:
    """Run a pending job to its end; its state. A job that is not pending is left alone.

    `counting`: what to count ids with. `as_document`: turns a report into JSON types.
    """
    job = _taken(job_id)
    if job is None:
        return "left alone"
    try:
        report = _run(job, world, counting)
    except Cancelled:
        return _end(job, "cancelled")
    except (ValueError, TitoError) as error:
        return _end(job, "failed", error_text=str(error))
    return _end(job, "done", report=text_of(as_document(report)))


def _taken(job_id: UUID) -> WhatIfJob | None:
    """The job, marked as running."""
    with transaction.atomic():
        job = WhatIfJob.objects.select_for_update().filter(pk=job_id, state="pending").first()
        if job is not None:
            job.state = "running"
            job.save(update_fields=["state"])
        return job


def _run(job: WhatIfJob, world: World, counting: Callable[[Wanted], RendererOf]) -> Report:
    wanted = restored(json.loads(job.wanted))
    ids = chosen(wanted)
    WhatIfJob.objects.filter(pk=job.pk).update(total=len(ids))

    def progress(done: int, total: int) -> None:
        if done % _PROGRESS_EVERY and done != total:
            return
        WhatIfJob.objects.filter(pk=job.pk).update(done=done)
        if WhatIfJob.objects.filter(pk=job.pk, cancel_requested=True).exists():
            raise Cancelled

    return run(ids, wanted.changes, world, counting(wanted), progress)


def _end(job: WhatIfJob, state: str, **values: Any) -> str:
    WhatIfJob.objects.filter(pk=job.pk).update(state=state, finished_at=timezone.now(), **values)
    return state
