"""The page of an export: how far it is, what it took, and whether it can be trusted."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from sessions_app.admin.pages.serving import Missing, page_for, shown
from sessions_app.admin.roles import may_operate
from sessions_app.json_text import loads
from trainer_export.admin.export_words import CHECKS, TABLES, reason_in_words
from trainer_export.models import ExportJob, ExportShard

SHARDS_SHOWN = 200
_OTHERS = 10
"""Finished exports that are offered to compare with."""
_POSSIBLE = {
    "pending": ("cancel",),
    "running": ("cancel",),
    "failed": ("resume", "cancel"),
    "cancelled": ("resume",),
}


@dataclass(frozen=True, slots=True)
class JobFacts:
    """An export's row."""

    id: str
    state: str
    cancel_requested: bool
    source: str
    destination: str
    format: str
    shape: str
    filters: Mapping[str, Any]
    rules: Mapping[str, Any]
    sessions: int | None
    rows: int
    tokens: int
    trained_tokens: int
    error: str | None
    created_at: datetime
    frozen_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class ShardLine:
    """One file."""

    id: int
    number: int
    name: str
    state: str
    attempts: int
    sessions: int
    rows: int
    tokens: int
    trained_tokens: int
    size: int
    digest: str
    error_text: str | None


@dataclass(frozen=True, slots=True)
class Check:
    """One reason to trust the export, or not to."""

    name: str
    holds: bool | None
    """None: not known yet."""
    numbers: Mapping[str, int]
    meaning: str


@dataclass(frozen=True, slots=True)
class CountLine:
    """One reason and how often it was met."""

    name: str
    number: int
    meaning: str


@dataclass(frozen=True, slots=True)
class CountTable:
    """One counter of the report."""

    title: str
    lines: list[CountLine]


@dataclass(frozen=True, slots=True)
class ActionLine:
    """One entry of the audit log."""

    at: datetime
    user: str
    text: str


@dataclass(frozen=True, slots=True)
class ExportPage:
    """Everything on the page."""

    job: JobFacts
    shards: list[ShardLine]
    shards_done: int
    shard_count: int | None
    """None: the input is not frozen yet."""
    checks: list[Check]
    tables: list[CountTable]
    report: Mapping[str, Any] | None
    can: list[str]
    """What can be done now."""
    others: list[JobFacts]
    """Finished exports that its report can be compared with."""
    actions: list[ActionLine]


@page_for("trainer_export.view_exportjob")
def export_page(request: HttpRequest, job_id: str) -> HttpResponse:
    """The page, or its twin."""
    job = job_of(job_id)
    lists = {
        name: reverse(f"admin:trainer_export_{name}_changelist") + f"?job={job.pk.hex}"
        for name in ("exportshard", "frozensession", "sample")
    }
    title = f"Export {job.pk.hex[:12]}"
    return shown(request, "export.html", title, build(job), lists=lists, may=may_operate(request.user))


def job_of(text: str) -> ExportJob:
    """The export of an address."""
    try:
        return ExportJob.objects.get(pk=UUID(text))
    except (ValueError, ExportJob.DoesNotExist):
        raise Missing(f"There is no export {text!r}.") from None


def build(job: ExportJob) -> ExportPage:
    """The page's value."""
    report = report_of(job)
    shards = job.shards.order_by("number")
    done = shards.filter(state="done").count()
    return ExportPage(
        job=facts_of(job),
        shards=[_shard_line(shard) for shard in shards.defer("report")[:SHARDS_SHOWN]],
        shards_done=done,
        shard_count=job.shard_count,
        checks=_checks(job, report, done),
        tables=_tables(report) if report else [],
        report=report,
        can=[*_POSSIBLE.get(job.state, ()), *(["again"] if job.frozen_at else [])],
        others=_others(job),
        actions=_actions(job),
    )


def facts_of(job: ExportJob) -> JobFacts:
    """An export's row as values."""
    return JobFacts(
        id=job.pk.hex,
        filters=loads(job.filters.encode()),
        rules=loads(job.rules.encode()),
        error=job.error_text,
        **{name: getattr(job, name) for name in _SAME_NAMES},
    )


_SAME_NAMES = (
    "state", "cancel_requested", "source", "destination", "format", "shape", "sessions", "rows", "tokens",
    "trained_tokens", "created_at", "frozen_at", "finished_at",
)  # fmt: skip


def report_of(job: ExportJob) -> dict[str, Any] | None:
    """What came of it; None before it is done."""
    return loads(job.report.encode()) if job.report else None


def _shard_line(shard: ExportShard) -> ShardLine:
    names = [name for name in ShardLine.__slots__ if name != "id"]
    return ShardLine(id=shard.pk, **{name: getattr(shard, name) for name in names})


def _checks(job: ExportJob, report: Mapping[str, Any] | None, done: int) -> list[Check]:
    """Counts of the report, each with what has to hold of them."""
    complete = None if job.shard_count is None else {"written": done, "in all": job.shard_count}
    written = None if complete is None or job.state == "running" else done == job.shard_count
    found: list[tuple[str, bool | None, Mapping[str, int] | None]] = [("complete", written, complete)]
    if report is not None:
        proof, masked = report["proof"], sum(report["masked"].values())
        once = {"sampled": report["generated_tokens"], "trained": report["trained_tokens"], "masked": masked}
        prefix = {"proven": proof["proven"], **proof["unproven"]}
        found.append(("exactly_once", once["sampled"] == once["trained"] + masked, once))
        found.append(("same_prefix", proof["proven"] == report["trained_tokens"], prefix))
        found.append(("sampled_only", True, {"masked although a hook wanted them": proof["unsampled"]}))
    return [Check(name, holds, numbers or {}, CHECKS[name]) for name, holds, numbers in found]


def _tables(report: Mapping[str, Any]) -> list[CountTable]:
    counters = {title: report[name] for name, title in TABLES.items()}
    counters |= {f"Traces: {name}": counts for name, counts in report.get("traces", {}).items()}
    return [CountTable(title, _count_lines(counts)) for title, counts in counters.items()]


def _count_lines(counts: Mapping[str, int]) -> list[CountLine]:
    ordered = sorted(counts.items(), key=lambda pair: -pair[1])
    return [CountLine(name, number, reason_in_words(name)) for name, number in ordered]


def _others(job: ExportJob) -> list[JobFacts]:
    rows = ExportJob.objects.filter(state="done").exclude(pk=job.pk).defer("report")
    return [facts_of(one) for one in rows.order_by("-created_at")[:_OTHERS]]


def _actions(job: ExportJob) -> list[ActionLine]:
    entries = LogEntry.objects.filter(
        content_type=ContentType.objects.get_for_model(ExportJob), object_id=str(job.pk)
    )
    lines = entries.order_by("-action_time").values_list("action_time", "user__username", "change_message")
    return [ActionLine(*line) for line in lines[:100]]
