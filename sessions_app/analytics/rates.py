"""Rates over time from `analytics_turn`: how often turns fork, heal, roll back, fail, split by who sent them.

Reads only, one statement a question, bounded by time. Invariant: a rate is given with what it counts and
out of how many; where nothing happened at all there is no rate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection

_IN_TREE = "outcome IN ('committed', 'confirmed')"
MOST_PARTS = 7
"""Series of one chart; what is beyond is added up as `OTHER`."""
OTHER = "(all others)"
NONE = "(none)"
"""Part of rows that have no value in the split column."""


@dataclass(frozen=True, slots=True)
class Metric:
    """Something that turns or requests do."""

    name: str
    title: str
    condition: str
    """Over a row of `analytics_turn`."""
    of_requests: bool
    """Out of all requests; else out of committed turns."""


METRICS = {
    metric.name: metric
    for metric in (
        Metric("fork", "Forks, retries among them", "attach_kind IN ('fork', 'retry')", False),
        Metric("heal", "Turns fed with stored ids", "tokens_reused > 0", False),
        Metric("rollback", "Rollbacks", "attach_kind = 'rollback'", False),
        Metric("retry", "Retries", "cause = 'retry'", False),
        Metric("reset", "Resets and passthroughs", "attach_kind IN ('reset', 'passthrough')", False),
        Metric("truncated", "Generations cut by length", "finish_reason = 'length'", False),
        Metric("ill_formed", "Ill-formed replies", "ill_formed", False),
        Metric("glue_unresolved", "Glue that could not be isolated", "cause = 'close_unresolved'", False),
        Metric("upstream_error", "Engine errors", "outcome = 'upstream_error'", True),
        Metric("refused", "Refused requests", "outcome = 'refused'", True),
        Metric("unattached", "Late, lost and cancelled", "outcome IN ('late', 'lost', 'cancelled')", True),
    )
}
"""By name, in the order of the page."""

SPLITS: Mapping[str, str] = {
    "nothing": "NULL::text",
    "harness": "harness",
    "model": "model",
    "matcher": "matcher",
    "policy": "policy",
    "template": "left(template, 12)",
}
"""What a chart may be split by."""


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time in equal steps."""

    start: datetime
    stop: datetime
    step: timedelta


@dataclass(frozen=True, slots=True)
class Counted:
    """What happened in one step, or in all of them."""

    hits: int
    total: int

    @property
    def rate(self) -> float | None:
        """None where nothing happened."""
        return self.hits / self.total if self.total else None


@dataclass(frozen=True, slots=True)
class Series:
    """One metric of one part over time."""

    part: str
    points: Mapping[datetime, Counted]
    """By start of the step; steps without a request are left out."""

    @property
    def whole(self) -> Counted:
        """Over the whole window."""
        counted = self.points.values()
        return Counted(sum(one.hits for one in counted), sum(one.total for one in counted))


def load_rates(window: Window, split: str) -> dict[str, list[Series]]:
    """Series by metric name, the busiest parts first."""
    hits = ", ".join(f"count(*) FILTER (WHERE {_counted(metric)})" for metric in METRICS.values())
    query = f"""
        SELECT date_bin(%(step)s, arrived_at, %(start)s), {SPLITS[split]}, count(*),
            count(*) FILTER (WHERE {_IN_TREE}), {hits}
        FROM analytics_turn WHERE arrived_at >= %(start)s AND arrived_at < %(stop)s
        GROUP BY 1, 2 ORDER BY 1
    """
    with connection.cursor() as cursor:
        parameters: dict[str, Any] = {"step": window.step, "start": window.start, "stop": window.stop}
        cursor.execute(query, parameters)
        rows = cursor.fetchall()
    names = _parts(rows, whole=split == "nothing")
    return {
        metric.name: _series(rows, names, 4 + at, 2 if metric.of_requests else 3)
        for at, metric in enumerate(METRICS.values())
    }


def _counted(metric: Metric) -> str:
    return metric.condition if metric.of_requests else f"{_IN_TREE} AND {metric.condition}"


def _parts(rows: Sequence[tuple], *, whole: bool) -> dict[str | None, str]:
    """What each value of the split column is called."""
    if whole:
        return {None: "all"}
    requests: dict[str | None, int] = {}
    for row in rows:
        requests[row[1]] = requests.get(row[1], 0) + row[2]
    busiest = sorted(requests, key=lambda part: -requests[part])
    return {part: (part or NONE) if at < MOST_PARTS else OTHER for at, part in enumerate(busiest)}


def _series(rows: Sequence[tuple], names: Mapping[str | None, str], hits: int, total: int) -> list[Series]:
    """The columns `hits` and `total` of the rows, by part."""
    points: dict[str, dict[datetime, Counted]] = {name: {} for name in names.values()}
    for row in rows:
        if row[total]:
            before = points[names[row[1]]].get(row[0], Counted(0, 0))
            points[names[row[1]]][row[0]] = Counted(before.hits + row[hits], before.total + row[total])
    return [Series(part, found) for part, found in points.items()]


@dataclass(frozen=True, slots=True)
class Behind:
    """A session behind a point of a chart."""

    session_id: UUID
    hits: int
    total: int
    first_record: int
    """The first request that counts."""


MOST_SESSIONS = 200


def sessions_behind(
    metric: Metric, start: datetime, stop: datetime, split: str, part: str | None
) -> list[Behind]:
    """Sessions with hits in a stretch of time, those with most first. `part`: None = every part."""
    of = "true" if metric.of_requests else _IN_TREE
    query = f"""
        SELECT session_id, count(*) FILTER (WHERE {metric.condition}), count(*),
            min(record_id) FILTER (WHERE {metric.condition})
        FROM analytics_turn
        WHERE arrived_at >= %(start)s AND arrived_at < %(stop)s AND {of}
            AND (%(part)s::text IS NULL OR coalesce({SPLITS[split]}, %(none)s) = %(part)s)
        GROUP BY 1 HAVING count(*) FILTER (WHERE {metric.condition}) > 0
        ORDER BY 2 DESC, 1 LIMIT %(most)s
    """
    with connection.cursor() as cursor:
        cursor.execute(
            query, {"start": start, "stop": stop, "part": part, "none": NONE, "most": MOST_SESSIONS}
        )
        return [Behind(*row) for row in cursor.fetchall()]
