"""A turn as OTLP spans: one for the turn, one below it for each phase.

Invariant: nothing in a span is of a conversation: ids, numbers, closed words. `gen_ai.*` is not used: these
are no model calls of an agent, and a receiver that makes triplets must not take them for some.
"""

import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

_TRACEPARENT = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})")
Value = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Phase:
    """One stage of a turn, in nanoseconds since 1970."""

    name: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Parent:
    """The span of the caller, as its `traceparent` header says."""

    trace_id: bytes
    span_id: bytes
    sampled: bool


@dataclass(frozen=True, slots=True)
class TurnSpan:
    """One turn that has ended."""

    start_ns: int
    end_ns: int
    phases: tuple[Phase, ...]
    """Those that it came through."""
    attributes: Mapping[str, Value]
    failed: str | None = None
    """Error code."""
    parent: Parent | None = None


def parent_of(traceparent: str | None) -> Parent | None:
    """The caller's span; None where the header is absent or malformed."""
    found = _TRACEPARENT.fullmatch(traceparent or "")
    if found is None:
        return None
    return Parent(bytes.fromhex(found[1]), bytes.fromhex(found[2]), bool(int(found[3], 16) & 1))


def request_of(turns: Iterable[TurnSpan], resource: Mapping[str, Value]) -> bytes:
    """The body of an OTLP request."""
    spans = [span for turn in turns for span in _spans(turn)]
    scope = ScopeSpans(scope=InstrumentationScope(name="tito"), spans=spans)
    return ExportTraceServiceRequest(
        resource_spans=[
            ResourceSpans(resource=Resource(attributes=_attributes(resource)), scope_spans=[scope])
        ]
    ).SerializeToString()


def _spans(turn: TurnSpan) -> Iterable[Span]:
    trace_id = turn.parent.trace_id if turn.parent else secrets.token_bytes(16)
    turn_id = secrets.token_bytes(8)
    yield Span(
        trace_id=trace_id,
        span_id=turn_id,
        parent_span_id=turn.parent.span_id if turn.parent else b"",
        name="tito.turn",
        kind=Span.SPAN_KIND_SERVER,
        start_time_unix_nano=turn.start_ns,
        end_time_unix_nano=turn.end_ns,
        attributes=_attributes(turn.attributes),
        status=_status(turn.failed),
    )
    for phase in turn.phases:
        yield Span(
            trace_id=trace_id,
            span_id=secrets.token_bytes(8),
            parent_span_id=turn_id,
            name=f"tito.{phase.name}",
            kind=Span.SPAN_KIND_INTERNAL,
            start_time_unix_nano=phase.start_ns,
            end_time_unix_nano=phase.end_ns,
            attributes=_attributes({"tito.session_id": turn.attributes["tito.session_id"]}),
        )


def _status(failed: str | None) -> Status:
    if failed is None:
        return Status(code=Status.STATUS_CODE_OK)
    return Status(code=Status.STATUS_CODE_ERROR, message=failed)


def _attributes(values: Mapping[str, Value]) -> list[KeyValue]:
    return [KeyValue(key=name, value=_value(value)) for name, value in values.items()]


def _value(value: Value) -> AnyValue:
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case _:
            return AnyValue(string_value=value)
