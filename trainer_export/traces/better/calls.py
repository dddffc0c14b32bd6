"""Spans of one call brought together: the tracer knows agent and tree, the proxy knows tokens; the response
id joins them.

Records of a call that have no response id count once: the innermost of nested ones, or the one that has
tokens.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trainer_export.traces.better.facts import CallFacts
from trainer_export.traces.better.forest import Forest
from trainer_export.traces.better.report import Remark, Report, Use
from trainer_export.traces.proxy_calls import LITELLM_REQUEST, RAW_REQUEST

_PROXY_NAMES = frozenset({RAW_REQUEST, LITELLM_REQUEST})


@dataclass(frozen=True, slots=True)
class Call:
    """One call to the model, seen by one or more spans."""

    records: tuple[CallFacts, ...]
    """The most trusted first."""

    @property
    def span_id(self) -> str:
        """The record that stands for the call in the report."""
        return self.records[0].span.span_id

    @property
    def response_id(self) -> str | None:
        """Shared by all records."""
        return self.records[0].response_id

    @property
    def start(self) -> float | None:
        """Earliest known start."""
        return min((r.span.start_time for r in self.records if r.span.start_time is not None), default=None)

    @property
    def end(self) -> float | None:
        """Latest known end."""
        return max((r.span.end_time for r in self.records if r.span.end_time is not None), default=None)

    @property
    def sequence(self) -> int:
        """The earliest given one: a proxy numbers a call when it arrives, a tracer when it has ended."""
        return min((r.span.sequence_id for r in self.records if r.span.sequence_id > 0), default=0)

    @property
    def is_proxied(self) -> bool:
        """A proxy recorded it, perhaps on another machine."""
        return any(record.span.name in _PROXY_NAMES for record in self.records)

    @property
    def failed(self) -> bool:
        """Every record says so."""
        return all(record.failed for record in self.records)


def joined_calls(forest: Forest, found: Sequence[CallFacts], report: Report) -> list[Call]:
    """Calls in canonical order of their first record."""
    groups: dict[str, list[CallFacts]] = {}
    for facts in _without_repeats(forest, found, report):
        groups.setdefault(facts.response_id or f"span {facts.span.span_id}", []).append(facts)
    calls = [Call(tuple(sorted(group, key=_trust, reverse=True))) for group in groups.values()]
    for call in calls:
        _report_records(call, report)
    return calls


def _trust(facts: CallFacts) -> tuple[bool, tuple[bool, bool, bool, int], str]:
    """Tokens of the proxy are exact by construction."""
    return (facts.has_tokens and facts.span.name in _PROXY_NAMES, facts.richness, facts.span.span_id)


def _without_repeats(forest: Forest, found: Sequence[CallFacts], report: Report) -> Iterable[CallFacts]:
    """Drop records without response id that only repeat what a call above or below them records."""
    by_id = {facts.span.span_id: facts for facts in found}
    above = _calls_above(forest, by_id)
    dropped: dict[str, str] = {}
    for inner_id, inner in by_id.items():
        outer_id = above[inner_id]
        if outer_id is None or outer_id in dropped:
            continue
        outer = by_id[outer_id]
        if outer.response_id is None and not (outer.has_tokens and not inner.has_tokens):
            dropped[outer_id] = inner_id
            report.use(outer_id, Use.REPEATS_INNER_CALL, inner_id)
        elif inner.response_id is None:
            dropped[inner_id] = outer_id
            report.use(inner_id, Use.INSIDE_A_CALL, outer_id)
    return [facts for facts in found if facts.span.span_id not in dropped]


def _calls_above(forest: Forest, calls: Mapping[str, CallFacts]) -> dict[str, str | None]:
    """The nearest call above each span."""
    above: dict[str, str | None] = {}
    for span_id, entering in forest.walk():
        if entering:
            parent = forest.parent(span_id)
            above[span_id] = parent if parent is None or parent in calls else above[parent]
    return above


def _report_records(call: Call, report: Report) -> None:
    report.use(call.span_id, Use.CALL)
    first = call.records[0]
    for record in call.records[1:]:
        report.use(record.span.span_id, Use.JOINED, call.span_id)
        known = record.has_tokens and first.has_tokens
        if known and (record.prompt_ids, record.response_ids) != (first.prompt_ids, first.response_ids):
            report.remark(record.span.span_id, Remark.TOKENS_DISAGREE)
