"""The page of a trace: the waterfall of its spans, which rewards reached which calls, and why no triplet.

Shows what a conversion gives now, under rules that the address names; mode `better` where it names none,
because that one accounts for every span.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from sessions_app.admin.pages.serving import Missing, page, read_session, shown
from sessions_app.errors import InvalidArgument
from sessions_app.insight.store_reads import ORM, settled
from sessions_app.presentation.addresses import session_url
from trainer_export.admin.trace_words import REMARKS, USES
from trainer_export.arguments import Arguments
from trainer_export.forests.load import Wanted, load_sessions
from trainer_export.models import Span, Trace, WaitingSpan
from trainer_export.spans.converting import converted
from trainer_export.spans.reading import load_traced
from trainer_export.spans.rules import BETTER, TraceRules
from trainer_export.spans.waterfall import Line, waterfall
from trainer_export.traces.better.distinct import original_id

_RULES = ("mode", "adapter", "agent_match", "llm_call_match")


@dataclass(frozen=True, slots=True)
class Word:
    """One outcome or remark with its meaning."""

    word: str
    tone: str
    meaning: str


@dataclass(frozen=True, slots=True)
class ShownLine:
    """A line with its words."""

    line: Line
    use: Word
    remarks: tuple[Word, ...]
    span_row: int | None
    """Its row in the list of spans."""


@dataclass(frozen=True, slots=True)
class TracePage:
    """Everything on the page."""

    trace_id: str
    session_id: str
    rollout_id: str | None
    attempt_id: str | None
    name: str
    spans: int
    calls: int
    rewards: int
    failed: int
    lasted_ms: float | None
    first_received_at: datetime
    last_received_at: datetime
    rules: dict[str, str]
    """As the address names them."""
    rules_error: str | None
    triplets: int
    error: str | None
    """Why the whole conversion failed."""
    lines: tuple[ShownLine, ...]
    missed: tuple[ShownLine, ...]
    waiting: int
    """Spans of the trace that belong to no session yet."""


@page
def trace_page(request: HttpRequest, session_id: str, trace_id: str) -> HttpResponse:
    """One trace of one session."""
    session = read_session(request, session_id, "trace")
    trace = Trace.objects.filter(session=session, trace_id=trace_id).first()
    if trace is None:
        raise Missing(f"Session {session.id.hex} has no trace {trace_id!r}.")
    named = {name: request.GET[name] for name in _RULES if request.GET.get(name)}
    value = _value(trace, named)
    return shown(
        request,
        "trace.html",
        f"Trace {trace_id[:12]}",
        value,
        session_url=session_url(session.id),
        modes=_modes(request.path, named),
        spans_url=_spans_url(trace),
    )


def _value(trace: Trace, named: dict[str, str]) -> TracePage:
    rules, problem = _rules(named)
    (stored,) = settled(load_sessions(ORM, [trace.session_id], Wanted()))
    session = settled(load_traced(ORM, stored))
    result = converted(session, rules)
    drawn = waterfall(session, result, trace.trace_id)
    rows = dict(
        Span.objects.filter(session=trace.session_id, trace_id=trace.trace_id).values_list("span_id", "id")
    )
    own = {span_id for span_id, trace_id in result.traces.items() if trace_id == trace.trace_id}
    lines = tuple(_shown(line, rows) for line in drawn.lines)
    return TracePage(
        trace_id=trace.trace_id,
        session_id=trace.session_id.hex,
        rollout_id=stored.session.rollout_id,
        attempt_id=stored.session.attempt_id,
        name=trace.name,
        spans=drawn.spans,
        calls=trace.calls,
        rewards=trace.rewards,
        failed=trace.failed,
        lasted_ms=None if trace.start_ns is None or trace.end_ns is None
        else (trace.end_ns - trace.start_ns) / 1e6,
        first_received_at=trace.first_received_at,
        last_received_at=trace.last_received_at,
        rules=named,
        rules_error=problem,
        triplets=sum(entry.use == "call" and entry.span_id in own for entry in result.report),
        error=drawn.error,
        lines=lines,
        missed=tuple(one for one in lines if one.line in drawn.missed),
        waiting=WaitingSpan.objects.filter(trace_id=trace.trace_id).count(),
    )  # fmt: skip


def _rules(named: dict[str, str]) -> tuple[TraceRules, str | None]:
    """The rules of an address; what it says wrong is told, and left out."""
    given: dict[str, Any] = {"mode": BETTER, **named}
    try:
        return TraceRules.of(Arguments(given)), None
    except InvalidArgument as error:
        return TraceRules(mode=BETTER), str(error)


def _shown(line: Line, rows: dict[str, int]) -> ShownLine:
    tone, meaning = USES[line.use]
    remarks = tuple(Word(remark, "warn", REMARKS[remark]) for remark in line.remarks)
    return ShownLine(line, Word(line.use, tone, meaning), remarks, rows.get(original_id(line.span_id)))


def _modes(path: str, named: dict[str, str]) -> list[tuple[str, str, bool]]:
    """Name, address and whether it is chosen, of each mode."""
    chosen = named.get("mode", BETTER)
    return [(mode, f"{path}?mode={mode}", mode == chosen) for mode in (BETTER, "compat")]


def _spans_url(trace: Trace) -> str:
    return (
        reverse("admin:trainer_export_span_changelist")
        + f"?session={trace.session_id.hex}&trace_id={trace.trace_id}"
    )
