"""GET /metrics: what the forest adds up to, and what this process is doing, for Prometheus.

Totals come from Postgres, so every process tells the same; they are read at most every few seconds. What
is of the moment (turns in flight, latencies) is this process's own.
"""

import time
from collections.abc import Iterator

from django.http.response import HttpResponseBase
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from rest_framework.request import Request

from sessions_app.api import access, error_counts, queues, runtime
from sessions_app.api.direct import DirectView, bytes_response
from sessions_app.api.runtime import Runtime
from sessions_app.store import totals
from sessions_app.store.totals import Totals
from sessions_app.turns.profiles import DEFAULT_PROFILE

_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_FRESH_S = 15.0


class MetricsView(DirectView):
    """Admin only, unless TITO_METRICS_OPEN."""

    http_method_names = ["get"]
    _cached: tuple[float, Totals] | None = None

    async def get(self, request: Request) -> HttpResponseBase:
        """The exposition text."""
        state = runtime.current()
        if not state.configuration.metrics_open:
            access.require_admin(state, request)
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Collected([*_forest(await self._totals(state)), *await _process(state)]))
        body = generate_latest(registry) + generate_latest(state.turns.latencies.registry)
        body += generate_latest(error_counts.REGISTRY)
        return bytes_response(body, content_type=_CONTENT_TYPE)

    async def _totals(self, state: Runtime) -> Totals:
        cached = MetricsView._cached
        if cached is None or time.monotonic() - cached[0] > _FRESH_S:
            cached = MetricsView._cached = (time.monotonic(), await totals.load_totals(state.db))
        return cached[1]


class _Collected:
    """Metrics that were gathered before."""

    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        """All of them."""
        yield from self._metrics


def _forest(values: Totals) -> Iterator[Metric]:
    for name, help_text, value in (
        ("tito_turns", "Nodes committed", values.turns),
        ("tito_healed_turns", "Turns fed stored ids", values.healed_turns),
        (
            "tito_healed_prefix_tokens",
            "Stored ids fed again, with the close added",
            values.healed_prefix_tokens,
        ),
        ("tito_nonlinear", "Non-linear turns of policy linear", values.nonlinear),
        (
            "tito_close_unresolved",
            "Turns whose template close could not be isolated",
            values.close_unresolved,
        ),
        ("tito_forks", "Forks and retries", values.forks),
        ("tito_rollbacks", "Rollbacks", values.rollbacks),
        ("tito_generated_tokens", "Sampled ids", values.generated_tokens),
        ("tito_prompt_tokens", "Ids fed", values.prompt_tokens),
        ("tito_added_tokens", "Ids tokenised from new messages", values.added_tokens),
    ):
        yield CounterMetricFamily(name, help_text, value=value)
    events = CounterMetricFamily("tito_history_events", "Events by kind and cause", labels=["kind", "cause"])
    for (kind, cause), count in values.events.items():
        events.add_metric([kind, cause], count)
    yield events
    records = CounterMetricFamily("tito_records", "Requests by outcome", labels=["state"])
    for record_state, count in values.records.items():
        records.add_metric([record_state], count)
    yield records
    sessions = GaugeMetricFamily("tito_sessions", "Sessions by status", labels=["status"])
    for status, count in values.sessions.items():
        sessions.add_metric([status], count)
    yield sessions
    processes = GaugeMetricFamily("tito_processes", "Web processes by their lease", labels=["lease"])
    for lease, count in values.processes.items():
        processes.add_metric([lease], count)
    yield processes
    yield from _drift(values)


def _drift(values: Totals) -> Iterator[Metric]:
    """Gauges: an audit under another renderer takes the place of an earlier one."""
    paths = GaugeMetricFamily(
        "tito_drift_paths", "Paths compared with a fresh render, by outcome", labels=["outcome"]
    )
    for outcome, count in values.drift.items():
        paths.add_metric([outcome], count)
    yield paths
    classes = GaugeMetricFamily(
        "tito_drift_paths_by_class", "Paths that differ from a fresh render, by class", labels=["class"]
    )
    for name, count in values.drift_classes.items():
        classes.add_metric([name], count)
    yield classes


def _own_spans(state: Runtime) -> Iterator[Metric]:
    spans = CounterMetricFamily("tito_own_spans", "Turns by what became of their spans", labels=["outcome"])
    if state.own_spans is not None:
        spans.add_metric(["sent"], state.own_spans.sent)
        spans.add_metric(["dropped"], state.own_spans.dropped)
    yield spans


async def _queues(state: Runtime) -> Metric:
    waiting = GaugeMetricFamily("tito_queue_length", "What waits to be done, by queue", labels=["queue"])
    for name, length in (await queues.lengths(state)).items():
        waiting.add_metric([name], length)
    return waiting


async def _process(state: Runtime) -> list[Metric]:
    profile = await state.profiles.get(DEFAULT_PROFILE)
    return [
        *_own_spans(state),
        await _queues(state),
        GaugeMetricFamily("tito_in_flight", "Turns in progress in this process", value=state.turns.in_flight),
        GaugeMetricFamily("tito_held", "Turns held by a paused profile", value=state.turns.held),
        GaugeMetricFamily(
            "tito_checkpoint_cache_bytes", "Bytes of cached token arrays", value=state.turns.cache.used_bytes
        ),
        GaugeMetricFamily(
            "tito_statements", "SQL statements sent by this process", value=state.db.statements
        ),
        GaugeMetricFamily(
            "tito_weights_stuck",
            "Engines that still report old weights after an update",
            value=len(state.turns.weights.stuck),
        ),
        GaugeMetricFamily("tito_engine_up", "An engine answers", value=float(await profile.backend.ready())),
    ]
