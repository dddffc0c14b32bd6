"""What-if: asks for a replay, follows it, shows its report."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from sessions_app.admin.filters import harnesses
from sessions_app.admin.pages.serving import Missing, page, shown
from sessions_app.admin.readers import world
from sessions_app.admin.roles import may_operate
from sessions_app.auditing import reads
from sessions_app.history.matchers.registry import BUILT_IN_MATCHERS
from sessions_app.insight.what_if.jobs import ask, cancel
from sessions_app.insight.what_if.report import compared
from sessions_app.insight.what_if.running import check
from sessions_app.insight.what_if.setup import NO_HARNESS
from sessions_app.insight.what_if.wanted import DEFAULT_LIMIT, wanted_of
from sessions_app.models import ModelProfile, WhatIfJob
from sessions_app.presentation.addresses import what_if_url
from sessions_app.tasks import what_if
from tito_project.configuration import HISTORY_POLICIES, ON_NONLINEAR

_RECENT = 20


@dataclass(frozen=True, slots=True)
class JobLine:
    """One replay in the list."""

    id: str
    state: str
    done: int
    total: int | None
    changes: dict[str, Any]
    asked_by: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class WhatIfPage:
    """The form and the newest replays."""

    jobs: list[JobLine]
    policies: tuple[str, ...]
    matchers: list[str]
    on_nonlinear: tuple[str, ...]
    harness_profiles: list[str]
    profiles: list[str]
    harnesses: list[str]
    limit: int


@dataclass(frozen=True, slots=True)
class ReplayPage:
    """One replay."""

    job: JobLine
    wanted: dict[str, Any]
    error: str | None
    report: dict[str, Any] | None


@page
def what_if_page(request: HttpRequest) -> HttpResponse:
    """The form; a POST asks for a replay."""
    if request.method == "POST":
        return _ask(request)
    asked = {name: request.GET.get(name, "") for name in ("session", "matcher", "policy")}
    return shown(request, "what_if.html", "What if", _form(), asked=asked, may=may_operate(request.user))


def _form() -> WhatIfPage:
    return WhatIfPage(
        jobs=[_line(job) for job in WhatIfJob.objects.defer("report")[:_RECENT]],
        policies=HISTORY_POLICIES,
        matchers=list(BUILT_IN_MATCHERS),
        on_nonlinear=ON_NONLINEAR,
        harness_profiles=[NO_HARNESS, *sorted(world().harnesses)],
        profiles=list(ModelProfile.objects.values_list("name", flat=True)),
        harnesses=harnesses(),
        limit=DEFAULT_LIMIT,
    )


def _line(job: WhatIfJob) -> JobLine:
    changes = json.loads(job.wanted)["changes"]
    given = {name: value for name, value in changes.items() if value is not None}
    return JobLine(job.pk.hex, job.state, job.done, job.total, given, job.asked_by, job.created_at)


def _ask(request: HttpRequest) -> HttpResponse:
    if not may_operate(request.user):
        raise PermissionDenied
    document: dict[str, Any] = {name: str(value).replace("\x00", "") for name, value in request.POST.items()}
    document["sessions"] = document.get("sessions", "").replace(",", " ").split()
    try:
        wanted = wanted_of({**document, "max_rollback": _whole(document.get("max_rollback"))})
        check(wanted.changes, world())
    except ValueError as error:
        messages.error(request, str(error))
        return HttpResponseRedirect(reverse("admin:tito_what_if"))
    job = ask(wanted, request.user.get_username())
    try:
        what_if.delay(job.pk.hex)
    except Exception as error:
        messages.error(request, f"No worker could be told: {error}. The replay waits.")
    return HttpResponseRedirect(what_if_url(job.pk))


def _whole(text: str | None) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or len(text) > 6:
        raise ValueError(f"max_rollback {text!r} is no whole number")
    return int(text)


@page
def replay_page(request: HttpRequest, job_id: str) -> HttpResponse:
    """One replay; a POST asks it to end."""
    job = _job(job_id)
    if request.method == "POST":
        if not may_operate(request.user):
            raise PermissionDenied
        cancel(job)
        return HttpResponseRedirect(what_if_url(job.pk))
    report = json.loads(job.report) if job.report else None
    if report is not None:
        reads.note(request.user.get_username(), "replay", compared(report))
    value = ReplayPage(_line(job), json.loads(job.wanted), job.error_text, report)
    return shown(
        request,
        "replay.html",
        "Replay",
        value,
        saved=_saved(report) if report else None,
        may=may_operate(request.user),
    )


def _job(text: str) -> WhatIfJob:
    try:
        return WhatIfJob.objects.get(pk=UUID(text))
    except (ValueError, WhatIfJob.DoesNotExist):
        raise Missing(f"There is no replay {text!r}.") from None


def _saved(report: dict[str, Any]) -> dict[str, Any]:
    """Both worlds row by row."""
    before, after = report["before"], report["after"]
    rows = [{"name": name, "before": before[name], "after": after[name]} for name in before]
    causes = sorted({*report["causes_before"], *report["causes_after"]})
    return {
        "rows": rows,
        "forks": before["forks"] - after["forks"],
        "tokens": after["reused_tokens"] - before["reused_tokens"],
        "causes": [
            {
                "name": name,
                "before": report["causes_before"].get(name, 0),
                "after": report["causes_after"].get(name, 0),
            }
            for name in causes
        ],
    }
