"""What operators do with exports: cancel, resume, run again. Confirmed, and kept in the audit log."""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import uuid4

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from sessions_app.admin.pages.actions import Question, confirmed
from sessions_app.admin.pages.serving import Missing, page_for
from sessions_app.api.wiring import conninfo
from sessions_app.errors import InvalidArgument
from sessions_app.insight.store_reads import ORM, settled
from trainer_export.admin.export_page import job_of
from trainer_export.jobs import job as jobs
from trainer_export.jobs.copying import copy_job
from trainer_export.jobs.running import on_loop
from trainer_export.models import ExportJob
from trainer_export.tasks import send_workers


@dataclass(frozen=True, slots=True)
class JobAction:
    """Something to do with an export."""

    question: Question
    perform: Callable[[ExportJob], str | None]


def _cancel(job: ExportJob) -> str | None:
    if not settled(jobs.cancel(ORM, job.pk)):
        return None
    send_workers(job.pk.hex)
    return "asked the export to end"


def _resume(job: ExportJob) -> str | None:
    if not settled(jobs.resume(ORM, job.pk)):
        return None
    send_workers(job.pk.hex)
    return "resumed the export"


def _again(job: ExportJob) -> str | None:
    destination = f"{job.destination.rstrip('/')}-again-{uuid4().hex[:8]}"
    try:
        copy = on_loop(conninfo(), lambda db: copy_job(db, job.pk, destination, "admin"))
    except InvalidArgument:
        return None
    send_workers(copy.hex)
    return f"ran the export again as {copy.hex}, to {destination}"


ACTIONS = {
    "cancel": JobAction(
        Question("Cancel the export", "What was written so far goes; nothing is published.", "Cancel it"),
        _cancel,
    ),
    "resume": JobAction(
        Question("Resume the export", "What is missing is written; what is there stays.", "Resume"), _resume
    ),
    "again": JobAction(
        Question(
            "Run the export again",
            "The same frozen input under the same rules, to a folder of its own: files of the same bytes.",
            "Run again",
        ),
        _again,
    ),
}


@page_for("trainer_export.view_exportjob")
def job_action_page(request: HttpRequest, job_id: str, action: str) -> HttpResponse:
    """Asks, then does."""
    job = job_of(job_id)
    if action not in ACTIONS:
        raise Missing(f"There is nothing called {action!r} to do with an export.")
    wanted = ACTIONS[action]
    back = reverse("admin:trainer_export_exportjob_change", args=[job.pk])
    return confirmed(request, wanted.question, back, job, lambda _: wanted.perform(job))
