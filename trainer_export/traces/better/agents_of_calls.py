"""Which agent each call of a trace belongs to, by the rules of mode `better`: for labelling nodes."""

from collections.abc import Sequence
from dataclasses import dataclass

from trainer_export.traces.better.calls import joined_calls
from trainer_export.traces.better.facts import facts_of
from trainer_export.traces.better.forest import Forest
from trainer_export.traces.better.labels import adopt, label_of, labels
from trainer_export.traces.better.reading import attempts, read_spans
from trainer_export.traces.better.report import Report
from trainer_export.traces.dialects.recognition import is_call
from trainer_export.traces.selection import DEFAULT_CALL_PATTERN
from trainer_export.traces.span import Span


@dataclass(frozen=True, slots=True)
class AgentOfCall:
    """One call with the agent above it."""

    span_ids: tuple[str, ...]
    """All records of the call."""
    response_id: str | None
    agent: str


def agents_of_calls(spans: Sequence[Span]) -> list[AgentOfCall]:
    """Calls below some agent; the others are left out."""
    return [found for group in attempts(read_spans(spans).spans) for found in _of_attempt(group)]


def _of_attempt(spans: Sequence[Span]) -> list[AgentOfCall]:
    report = Report((span.span_id, span.name) for span in spans)
    forest = Forest(spans, report)
    found = [facts_of(span) for span in spans if is_call(span, DEFAULT_CALL_PATTERN)]
    calls = joined_calls(forest, found, report)
    adopt(forest, {facts.span.span_id for facts in found}, report)
    where = labels(forest, ())
    labelled = [(call, label_of(call, where).agent) for call in calls]
    return [
        AgentOfCall(tuple(record.span.span_id for record in call.records), call.response_id, agent)
        for call, agent in labelled
        if agent is not None
    ]
