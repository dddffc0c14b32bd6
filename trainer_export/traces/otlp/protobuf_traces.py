"""ExportTraceServiceRequest as protobuf -> spans."""

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.trace.v1 import trace_pb2

from sessions_app.errors import BadRequest
from trainer_export.traces.otlp.batch import Batch, RejectedSpan, Rejection
from trainer_export.traces.otlp.cleaning import clean_text
from trainer_export.traces.otlp.ids import SPAN_ID_BYTES, TRACE_ID_BYTES, parent_id, required_id
from trainer_export.traces.otlp.protobuf_values import attributes
from trainer_export.traces.otlp.received import (
    STATUS_CODES,
    ReceivedSpan,
    Resource,
    Scope,
    SpanEvent,
    SpanLink,
)


def traces_from_protobuf(body: bytes) -> Batch:
    """An empty body is an empty batch."""
    request = ExportTraceServiceRequest()
    try:
        request.ParseFromString(body)
    except DecodeError as error:
        raise BadRequest(f"Unable to parse OTLP traces payload: {error}") from None
    batch = Batch()
    for group in request.resource_spans:
        resource = Resource(attributes(group.resource.attributes), group.schema_url)
        for scoped in group.scope_spans:
            scope = _scope(scoped.scope, scoped.schema_url)
            for span in scoped.spans:
                _add(batch, span, resource, scope)
    return batch


def _add(batch: Batch, span: trace_pb2.Span, resource: Resource, scope: Scope) -> None:
    try:
        batch.spans.append(_received(span, resource, scope))
    except RejectedSpan as rejection:
        batch.rejected.append(Rejection(str(rejection), span.span_id.hex()))


def _received(span: trace_pb2.Span, resource: Resource, scope: Scope) -> ReceivedSpan:
    return ReceivedSpan(
        trace_id=required_id(span.trace_id, TRACE_ID_BYTES, "trace_id"),
        span_id=required_id(span.span_id, SPAN_ID_BYTES, "span_id"),
        parent_id=parent_id(span.parent_span_id),
        name=clean_text(span.name),
        start_ns=span.start_time_unix_nano or None,
        end_ns=span.end_time_unix_nano or None,
        attributes=attributes(span.attributes),
        kind=int(span.kind),
        status_code=STATUS_CODES[span.status.code]
        if span.status.code < len(STATUS_CODES)
        else STATUS_CODES[0],
        status_description=clean_text(span.status.message),
        events=tuple(_event(event) for event in span.events),
        links=tuple(_link(link) for link in span.links),
        resource=resource,
        scope=scope,
        trace_state=clean_text(span.trace_state),
        flags=span.flags,
        dropped_attributes=span.dropped_attributes_count,
        dropped_events=span.dropped_events_count,
        dropped_links=span.dropped_links_count,
    )


def _event(event: trace_pb2.Span.Event) -> SpanEvent:
    return SpanEvent(clean_text(event.name), event.time_unix_nano or None, attributes(event.attributes))


def _link(link: trace_pb2.Span.Link) -> SpanLink:
    return SpanLink(link.trace_id.hex(), link.span_id.hex(), attributes(link.attributes))


def _scope(scope: InstrumentationScope, schema_url: str) -> Scope:
    return Scope(clean_text(scope.name), clean_text(scope.version), attributes(scope.attributes), schema_url)
