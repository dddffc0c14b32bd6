"""One trace drawn: its spans in tree order with their place in time, and what became of each. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trainer_export.spans.converting import Converted, TracedSession
from trainer_export.traces.better.report import Entry, Use
from trainer_export.traces.better.reward_facts import rewards_of
from trainer_export.traces.dialects.agents import agent_name
from trainer_export.traces.dialects.response_ids import response_id
from trainer_export.traces.reference import ValidationError
from trainer_export.traces.span import Span
from trainer_export.traces.triplet import Triplet

MOST_LINES = 2000

WHY_NOT = frozenset(
    {
        Use.AGENT_NOT_WANTED,
        Use.CONVERSION_FAILED,
        Use.FAILED_CALL,
        Use.INSIDE_A_CALL,
        Use.INSIDE_A_REWARD,
        Use.MALFORMED_REWARD,
        Use.MALFORMED_SPAN,
        Use.NO_TOKEN_IDS,
        Use.OTHER_NAME,
        Use.OUTSIDE_THE_TREE,
        Use.REPEATS_INNER_CALL,
        Use.REWARD_WITHOUT_CALL,
        Use.SUPERSEDED_REWARD,
    }
)
"""Outcomes of calls and rewards that reached no triplet."""


@dataclass(frozen=True, slots=True)
class GivenReward:
    """A reward that a call got."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Line:
    """One span."""

    span_id: str
    parent_id: str | None
    depth: int
    name: str
    agent: str | None
    """The agent that the span is of."""
    use: str
    detail: str
    """Span that it was joined with, matched to or superseded by; the error text of a malformed one."""
    remarks: tuple[str, ...]
    start_ms: float | None
    """After the trace's start; None where the start is unknown."""
    lasted_ms: float | None
    """None where a time is unknown; below 0 where clocks are skewed."""
    left: float
    """Place in time, in per cent of the trace."""
    width: float
    failed: bool
    carries: tuple[GivenReward, ...]
    """Rewards that the span carries."""
    rewards: tuple[GivenReward, ...]
    """Rewards that the call got."""
    prompt_tokens: int | None
    """Of the triplet; None for a span that is none."""
    response_tokens: int | None
    node: int | None
    """Of the session, whose reply the call got."""


@dataclass(frozen=True, slots=True)
class Waterfall:
    """A whole trace."""

    lines: tuple[Line, ...]
    """The first MOST_LINES in tree order."""
    spans: int
    error: str | None
    """Why the whole conversion failed."""

    @property
    def missed(self) -> tuple[Line, ...]:
        """Calls and rewards that reached no triplet."""
        return tuple(line for line in self.lines if line.use in WHY_NOT)


def waterfall(session: TracedSession, result: Converted, trace_id: str) -> Waterfall:
    """The received spans of one trace."""
    spans = [span for span in result.received if span.trace_id == trace_id]
    drawing = _Drawing(session, result, spans)
    ordered = list(_tree_order(spans))
    lines = tuple(drawing.line(span, depth) for span, depth in ordered[:MOST_LINES])
    return Waterfall(lines, len(spans), result.error)


def _tree_order(spans: Sequence[Span]) -> Iterator[tuple[Span, int]]:
    """Every span once, with its depth; children by start, then number. What is in a cycle comes last."""
    ordered = sorted(spans, key=lambda span: (span.start_time or 0.0, span.sequence_id, span.span_id))
    known = {span.span_id for span in spans}
    children: dict[str | None, list[Span]] = {}
    for span in ordered:
        children.setdefault(span.parent_id if span.parent_id in known else None, []).append(span)
    seen: set[str] = set()
    for root in [*children.get(None, []), *ordered]:
        stack = [(root, 0)]
        while stack:
            span, depth = stack.pop()
            if span.span_id in seen:
                continue
            seen.add(span.span_id)
            yield span, depth
            stack += [(child, depth + 1) for child in reversed(children.get(span.span_id, []))]


class _Drawing:
    """What is looked up for each line."""

    def __init__(self, session: TracedSession, result: Converted, spans: Sequence[Span]) -> None:
        self._session = session
        self._entries = {entry.span_id: entry for entry in result.report}
        self._triplets = _by_call(result)
        times = [time for span in spans for time in (span.start_time, span.end_time) if time is not None]
        self._start = min(times, default=0.0)
        self._lasted = max(max(times, default=0.0) - self._start, 1e-9)

    def line(self, span: Span, depth: int) -> Line:
        """The line of a span."""
        entry = self._entries.get(span.span_id, Entry(span.span_id, span.name))
        triplet = self._triplets.get(span.span_id)
        start, end = span.start_time, span.end_time
        known = start is not None and end is not None
        left = 0.0 if start is None else 100 * (start - self._start) / self._lasted
        lasted = end - start if start is not None and end is not None else None
        return Line(
            span_id=span.span_id,
            parent_id=span.parent_id,
            depth=depth,
            name=span.name,
            agent=agent_name(span),
            use=str(entry.use),
            detail=entry.detail,
            remarks=tuple(str(remark) for remark in entry.remarks),
            start_ms=None if start is None else 1000 * (start - self._start),
            lasted_ms=None if lasted is None else 1000 * lasted,
            left=min(left, 99.5),
            width=max(0.5, 100 * max(lasted or 0.0, 0.0) / self._lasted) if known else 0.0,
            failed=span.status_code == "ERROR",
            carries=_carried(span),
            rewards=_got(triplet),
            prompt_tokens=len(triplet.prompt["token_ids"]) if triplet else None,
            response_tokens=len(triplet.response["token_ids"]) if triplet else None,
            node=self._node(span),
        )

    def _node(self, span: Span) -> int | None:
        call = self._session.served.get(response_id(span.attributes) or "")
        if call is None or call.late is not None or call.session_id != self._session.session_id:
            return None
        return call.seq


def _by_call(result: Converted) -> Mapping[str, Triplet]:
    """Triplets by the spans of their call: as `better` lists them, in `compat` by order and response."""
    found = {
        span_id: triplet for triplet in result.triplets for span_id in triplet.metadata.get("span_ids", ())
    }
    if not found:
        calls = [entry.span_id for entry in result.report if entry.use is Use.CALL]
        if len(calls) == len(result.triplets):
            found = dict(zip(calls, result.triplets, strict=True))
    return found


def _got(triplet: Triplet | None) -> tuple[GivenReward, ...]:
    if triplet is None:
        return ()
    named = triplet.metadata.get("rewards") or ({} if triplet.reward is None else {"reward": triplet.reward})
    return tuple(GivenReward(name, value) for name, value in named.items())


def _carried(span: Span) -> tuple[GivenReward, ...]:
    try:
        found = rewards_of(span)
    except ValidationError:
        return ()
    return tuple(GivenReward(name, value) for reward in found for name, value in reward.values)
