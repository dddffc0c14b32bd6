"""Two exports beside each other: what was asked for, what the reports count, and which files are the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from sessions_app.admin.pages.serving import Missing, page_for, shown
from trainer_export.admin.export_page import JobFacts, facts_of, job_of, report_of
from trainer_export.jobs.report import differences
from trainer_export.models import ExportJob

_ASKED = ("shape", "format", "filters", "rules")
_SHARDS = 2000
"""Files of one export that are compared."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that differs."""

    path: str
    one: Any
    other: Any
    change: float | None
    """From the first to the second, of numbers."""


@dataclass(frozen=True, slots=True)
class Files:
    """Shards by number and digest."""

    same: int
    differing: list[str]
    """Names of files of the same number and other bytes."""
    only_one: int
    only_other: int


@dataclass(frozen=True, slots=True)
class DiffPage:
    """Everything on the page."""

    one: JobFacts
    other: JobFacts
    asked: list[Difference]
    """In shape, format, filters and rules."""
    report: list[Difference]
    unavailable: str | None
    """Why the reports cannot be compared."""
    equal_values: int
    """Values that both reports have the same."""
    files: Files


@page_for("trainer_export.view_exportjob")
def export_diff_page(request: HttpRequest) -> HttpResponse:
    """The page, or its twin: `?a=EXPORT&b=EXPORT`."""
    jobs = [job_of(_named(request, name)) for name in ("a", "b")]
    address = reverse("admin:tito_export_diff")
    return shown(request, "export_diff.html", "Two exports", build(*jobs), address=address)


def _named(request: HttpRequest, name: str) -> str:
    text = request.GET.get(name, "")
    if not text:
        raise Missing(f"{name!r} must name an export. Choose one on an export's page.")
    return text


def build(one: ExportJob, other: ExportJob) -> DiffPage:
    """The page's value."""
    facts = facts_of(one), facts_of(other)
    asked = [{name: getattr(each, name) for name in _ASKED} for each in facts]
    reports = report_of(one), report_of(other)
    unavailable = _unavailable(facts, reports)
    return DiffPage(
        one=facts[0],
        other=facts[1],
        asked=_differences(*asked),
        report=[] if unavailable else _differences(*reports),
        unavailable=unavailable,
        equal_values=0 if unavailable else _equal(*reports),
        files=_files(_digests(one), _digests(other)),
    )


def _unavailable(facts: Sequence[JobFacts], reports: Sequence[Any]) -> str | None:
    missing = [each for each, report in zip(facts, reports, strict=True) if report is None]
    told = [f"export {each.id[:12]} is {each.state} and has no report yet" for each in missing]
    return ", and ".join(told) or None


def _differences(one: Any, other: Any) -> list[Difference]:
    found = differences(one, other).items()
    return [Difference(path, before, after, _change(before, after)) for path, (before, after) in found]


def _change(one: Any, other: Any) -> float | None:
    """Absent counts are counts of none."""
    numbers = [0 if value is None else value for value in (one, other)]
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in numbers):
        return None
    return numbers[1] - numbers[0]


def _equal(one: Any, other: Any) -> int:
    """Leaves of both documents with the same value."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return sum(_equal(one[name], other[name]) for name in one.keys() & other.keys())
    return int(one == other)


def _digests(job: ExportJob) -> dict[int, tuple[str, str]]:
    rows = job.shards.order_by("number").values_list("number", "name", "digest")[:_SHARDS]
    return {number: (name, digest) for number, name, digest in rows}


def _files(one: Mapping[int, tuple[str, str]], other: Mapping[int, tuple[str, str]]) -> Files:
    both = sorted(one.keys() & other.keys())
    same = [number for number in both if one[number][1] and one[number][1] == other[number][1]]
    return Files(
        same=len(same),
        differing=[one[number][0] for number in both if number not in same],
        only_one=len(one.keys() - other.keys()),
        only_other=len(other.keys() - one.keys()),
    )
