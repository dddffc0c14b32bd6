"""Chosen sessions of the list, exported: a question on a page of its own, then a job that workers write."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from sessions_app.admin.pages.actions import log
from sessions_app.admin.pages.serving import shown
from sessions_app.insight.store_reads import ORM, settled
from sessions_app.models import Session
from trainer_export.arguments import Arguments
from trainer_export.jobs import job as jobs
from trainer_export.jobs.filters import Filters
from trainer_export.jobs.request import ExportRequest, ExportRules, below
from trainer_export.jobs.values import FORMATS, SHAPES
from trainer_export.models import ExportJob
from trainer_export.tasks import send_workers

MOST = 900
"""Sessions of one such export: each is a field of the form, and Django takes a thousand. More are named by
filters.
"""
CONFIRMED = "confirmed"


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the page asks about."""

    sessions: list[str]
    destination: str
    shapes: tuple[str, ...]
    formats: tuple[str, ...]
    most: int


@admin.action(description="Export chosen sessions", permissions=["export"])
def export_chosen(modeladmin: Any, request: HttpRequest, chosen: "QuerySet[Session]") -> HttpResponse | None:
    """Asks what shape and format, then creates the job and leads to it."""
    sessions = [id.hex for id in chosen.order_by("created_at").values_list("id", flat=True)[: MOST + 1]]
    if len(sessions) > MOST:
        messages.error(request, f"At most {MOST:,} sessions are exported from here; name more by filters.")
        return None
    if not sessions:
        messages.warning(request, "None of the chosen sessions is there any more.")
        return None
    folder = f"admin/{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid4().hex[:8]}"
    asked = Chosen(sessions, below(settings.TITO.export_url, folder), SHAPES, FORMATS, MOST)
    if CONFIRMED not in request.POST:
        return shown(
            request,
            "export_chosen.html",
            "Export chosen sessions",
            asked,
            back=reverse("admin:sessions_app_session_changelist"),
            selected=ACTION_CHECKBOX_NAME,
            confirmed=CONFIRMED,
        )
    job = _create(request, asked)
    return HttpResponseRedirect(reverse("admin:trainer_export_exportjob_change", args=[job.pk]))


def _create(request: HttpRequest, asked: Chosen) -> ExportJob:
    """The job's row and its entry in the log, together; then a word to the workers."""
    wanted = ExportRequest(
        asked.destination,
        format=_one_of(request, "format", FORMATS),
        shape=_one_of(request, "shape", SHAPES),
        filters=Filters(sessions=asked.sessions),
        rules=ExportRules.of(Arguments({}), settings.TITO, allow_dotted=False),
    )
    with transaction.atomic():
        job_id = settled(jobs.create(ORM, wanted, "admin"))
        assert job_id is not None  # ids are drawn, not given
        job = ExportJob.objects.get(pk=job_id)
        log(request, job, f"asked for an export of {len(asked.sessions)} chosen sessions")
    told = "" if send_workers(job.pk.hex) else " The broker is away; a worker will find it by itself."
    messages.success(request, f"Done: asked for the export to {asked.destination}.{told}")
    return job


def _one_of(request: HttpRequest, name: str, choices: tuple[str, ...]) -> str:
    """A choice of the form; nonsense is the first."""
    given = request.POST.get(name, "")
    return given if given in choices else choices[0]
