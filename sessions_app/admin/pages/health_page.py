"""Health: is it this session or everybody? Rates over time with their numbers, and the sessions behind each
point."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone

from sessions_app.admin.bounded import time_bound
from sessions_app.admin.pages.chart import Chart, draw_chart, shape_of
from sessions_app.admin.pages.serving import Missing, page, shown
from sessions_app.analytics.rates import (
    METRICS,
    OTHER,
    SPLITS,
    Behind,
    Metric,
    Series,
    Window,
    load_rates,
    sessions_behind,
)

RANGES = {
    "1h": (timedelta(hours=1), timedelta(minutes=2)),
    "6h": (timedelta(hours=6), timedelta(minutes=15)),
    "24h": (timedelta(hours=24), timedelta(hours=1)),
    "7d": (timedelta(days=7), timedelta(hours=6)),
    "30d": (timedelta(days=30), timedelta(days=1)),
}
"""How far back, and in which steps."""
LONGEST_S = 20.0
"""What counts every turn of a range may take longer than a list."""
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Row:
    """A series in numbers."""

    part: str
    hits: int
    total: int
    rate: float | None
    style: int
    shape: str
    """Of its marks; with its stroke the same as in the chart."""
    href: str


@dataclass(frozen=True, slots=True)
class Card:
    """One metric."""

    name: str
    title: str
    of: str
    """What the rate is out of."""
    hits: int
    total: int
    rate: float | None
    threshold: float | None
    alarming: bool
    """The rate over the whole window is above the threshold."""
    rows: list[Row]
    chart: Chart


@dataclass(frozen=True, slots=True)
class HealthPage:
    """Everything on the page."""

    range: str
    split: str
    start: datetime
    stop: datetime
    cards: list[Card]


@page
def health_page(request: HttpRequest) -> HttpResponse:
    """The page, or its twin. `?range=` and `?split=` choose."""
    asked_range = request.GET.get("range", "")
    asked_split = request.GET.get("split", "")
    value = build(
        asked_range if asked_range in RANGES else "24h", asked_split if asked_split in SPLITS else "nothing"
    )
    return shown(request, "health.html", "Health", value, ranges=list(RANGES), splits=list(SPLITS))


def build(span: str, split: str) -> HealthPage:
    """The page's value."""
    window = window_of(span, timezone.now())
    with time_bound(LONGEST_S):
        rates = load_rates(window, split)
    cards = [_card(METRICS[name], series, window, split) for name, series in rates.items()]
    return HealthPage(span, split, window.start, window.stop, cards)


def window_of(span: str, now: datetime) -> Window:
    """The window that ends with the step in which it is now; its edges do not move within a step."""
    length, step = RANGES[span]
    stop = _EPOCH + step * ((now - _EPOCH) // step + 1)
    return Window(stop - length, stop, step)


def _card(metric: Metric, series: list[Series], window: Window, split: str) -> Card:
    def address(at: datetime, part: str) -> str:
        return _sessions_url(metric, at, at + window.step, split, part)

    wholes = [one.whole for one in series]
    hits, total = sum(one.hits for one in wholes), sum(one.total for one in wholes)
    rate = hits / total if total else None
    threshold = thresholds().get(metric.name)
    return Card(
        name=metric.name,
        title=metric.title,
        of="requests" if metric.of_requests else "committed turns",
        hits=hits,
        total=total,
        rate=rate,
        threshold=threshold,
        alarming=threshold is not None and rate is not None and rate > threshold,
        rows=[_row(metric, one, at, window, split) for at, one in enumerate(series)],
        chart=draw_chart(window, series, threshold, address),
    )


def thresholds() -> Mapping[str, float]:
    """Alert thresholds by metric, from TITO_ALERTS."""
    alerts: Mapping[str, float] = settings.TITO.alerts
    return alerts


def _row(metric: Metric, series: Series, number: int, window: Window, split: str) -> Row:
    whole = series.whole
    href = _sessions_url(metric, window.start, window.stop, split, series.part)
    return Row(series.part, whole.hits, whole.total, whole.rate, number, shape_of(number), href)


def _sessions_url(metric: Metric, start: datetime, stop: datetime, split: str, part: str) -> str:
    query = {"metric": metric.name, "from": start.isoformat(), "to": stop.isoformat(), "split": split}
    if split != "nothing" and part != OTHER:
        query["part"] = part
    return f"{reverse('admin:tito_health_sessions')}?{urlencode(query)}"


@dataclass(frozen=True, slots=True)
class BehindPage:
    """The sessions behind a point."""

    metric: str
    title: str
    start: datetime
    stop: datetime
    split: str
    part: str | None
    sessions: list[Behind]


@page
def behind_page(request: HttpRequest) -> HttpResponse:
    """The sessions behind a point of a chart, or their twin."""
    metric = METRICS.get(request.GET.get("metric", ""))
    split = request.GET.get("split", "nothing")
    if metric is None or split not in SPLITS:
        raise Missing("A metric and a split are needed: follow a point of a chart on the health page.")
    start, stop = (_moment(request, name) for name in ("from", "to"))
    part = request.GET.get("part")
    with time_bound(LONGEST_S):
        found = sessions_behind(metric, start, stop, split, part.replace("\x00", "") if part else None)
    value = BehindPage(metric.name, metric.title, start, stop, split, part, found)
    return shown(request, "behind.html", metric.title, value)


def _moment(request: HttpRequest, name: str) -> datetime:
    try:
        moment = datetime.fromisoformat(request.GET.get(name, ""))
    except ValueError:
        raise Missing(f"{name!r} must be a moment, such as 2026-01-31T12:00:00+00:00.") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
