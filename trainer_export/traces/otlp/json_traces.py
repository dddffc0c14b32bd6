"""ExportTraceServiceRequest as OTLP/JSON -> spans. Ids are hex, enums are numbers, 64-bit numbers may be
text.
"""

from collections.abc import Mapping
from typing import Any

from trainer_export.traces.otlp.batch import Batch, RejectedSpan, Rejection
from trainer_export.traces.otlp.ids import SPAN_ID_BYTES, TRACE_ID_BYTES, from_hex, parent_id, required_id
from trainer_export.traces.otlp.json_bodies import loaded, records
from trainer_export.traces.otlp.json_fields import enum, number, objects, one_object, text, time
from trainer_export.traces.otlp.json_values import attributes
from trainer_export.traces.otlp.received import (
    STATUS_CODES,
    ReceivedSpan,
    Resource,
    Scope,
    SpanEvent,
    SpanLink,
)

_KINDS = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")


def traces_from_json(body: bytes) -> Batch:
    """An empty body is an empty batch."""
    batch = Batch()
    for item, resource, scope in records(loaded(body), "resourceSpans", "scopeSpans", "spans"):
        try:
            batch.spans.append(_received(item, resource, scope))
        except RejectedSpan as rejection:
            sent = item.get("spanId") if item is not None else None
            batch.rejected.append(Rejection(str(rejection), sent if isinstance(sent, str) else ""))
    return batch


def _received(item: Mapping[str, Any] | None, resource: Resource, scope: Scope) -> ReceivedSpan:
    if item is None:
        raise RejectedSpan("a span is no object")
    status = one_object(item, "status")
    code = enum(status, "code", STATUS_CODES, "STATUS_CODE_")
    return ReceivedSpan(
        trace_id=required_id(from_hex(item.get("traceId"), "trace_id"), TRACE_ID_BYTES, "trace_id"),
        span_id=required_id(from_hex(item.get("spanId"), "span_id"), SPAN_ID_BYTES, "span_id"),
        parent_id=parent_id(from_hex(item.get("parentSpanId"), "parent_span_id")),
        name=text(item, "name"),
        start_ns=time(item, "startTimeUnixNano"),
        end_ns=time(item, "endTimeUnixNano"),
        attributes=attributes(item),
        kind=enum(item, "kind", _KINDS, "SPAN_KIND_"),
        status_code=STATUS_CODES[code] if 0 <= code < len(STATUS_CODES) else STATUS_CODES[0],
        status_description=text(status, "message"),
        events=tuple(_event(event) for event in objects(item, "events")),
        links=tuple(_link(link) for link in objects(item, "links")),
        resource=resource,
        scope=scope,
        trace_state=text(item, "traceState"),
        flags=number(item, "flags"),
        dropped_attributes=number(item, "droppedAttributesCount"),
        dropped_events=number(item, "droppedEventsCount"),
        dropped_links=number(item, "droppedLinksCount"),
    )


def _event(event: Mapping[str, Any]) -> SpanEvent:
    return SpanEvent(text(event, "name"), time(event, "timeUnixNano"), attributes(event))


def _link(link: Mapping[str, Any]) -> SpanLink:
    trace_id = from_hex(link.get("traceId"), "link trace_id").hex()
    return SpanLink(trace_id, from_hex(link.get("spanId"), "link span_id").hex(), attributes(link))
