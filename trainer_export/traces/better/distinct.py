"""Span ids are unique within a trace only: those that several traces of an attempt use are told apart.

The trace with the lowest id keeps its span's id; elsewhere the id is followed by that of its trace.
Invariant: without such a clash nothing is renamed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from trainer_export.traces.span import Span

_Key = tuple[str, str, str]
_BETWEEN = ":"


def told_apart(spans: Sequence[Span]) -> list[Span]:
    """The spans in their order; ids, parents and links renamed where ids clash."""
    traces: dict[_Key, set[str]] = {}
    for span in spans:
        traces.setdefault(_key(span, span.span_id), set()).add(span.trace_id)
    clashing = {key: min(found) for key, found in traces.items() if len(found) > 1}
    return [_renamed(span, clashing, traces) for span in spans] if clashing else list(spans)


def original_id(span_id: str) -> str:
    """The id as it was sent."""
    return span_id.partition(_BETWEEN)[0]


def _key(span: Span, span_id: str) -> _Key:
    return (span.rollout_id, span.attempt_id, span_id)


def _renamed(span: Span, clashing: Mapping[_Key, str], traces: Mapping[_Key, set[str]]) -> Span:
    def name(span_id: str, trace_id: str) -> str:
        key = _key(span, span_id)
        if key not in clashing or trace_id == clashing[key] or trace_id not in traces[key]:
            return span_id
        return f"{span_id}{_BETWEEN}{trace_id}"

    def linked(link: Mapping[str, Any]) -> Mapping[str, Any]:
        context = link.get("context")
        if not isinstance(context, Mapping):
            return link
        span_id, trace_id = context.get("span_id"), context.get("trace_id")
        if not (isinstance(span_id, str) and isinstance(trace_id, str)):
            return link
        return {**link, "context": {**context, "span_id": name(span_id, trace_id)}}

    return replace(
        span,
        span_id=name(span.span_id, span.trace_id),
        parent_id=None if span.parent_id is None else name(span.parent_id, span.trace_id),
        links=tuple(linked(link) for link in span.links),
    )
