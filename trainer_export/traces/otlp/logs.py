"""ExportLogsServiceRequest in both encodings -> the spans of reward records; others are ignored."""

from collections.abc import Mapping
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from sessions_app.errors import BadRequest
from trainer_export.traces.otlp import json_values, protobuf_values
from trainer_export.traces.otlp.batch import Batch, RejectedSpan, Rejection
from trainer_export.traces.otlp.ids import TRACE_ID_BYTES, from_hex, parent_id, required_id
from trainer_export.traces.otlp.json_bodies import loaded, records
from trainer_export.traces.otlp.json_fields import text, time
from trainer_export.traces.otlp.received import ReceivedSpan, Resource, Scope
from trainer_export.traces.otlp.reward_records import reward_span


def logs_from_protobuf(body: bytes) -> Batch:
    """An empty body is an empty batch."""
    request = ExportLogsServiceRequest()
    try:
        request.ParseFromString(body)
    except DecodeError as error:
        raise BadRequest(f"Unable to parse OTLP logs payload: {error}") from None
    batch = Batch()
    for group in request.resource_logs:
        resource = Resource(protobuf_values.attributes(group.resource.attributes), group.schema_url)
        for scoped in group.scope_logs:
            scope = Scope(scoped.scope.name, scoped.scope.version, {}, scoped.schema_url)
            for record in scoped.log_records:
                try:
                    _add(batch, _from_protobuf(record, resource, scope))
                except RejectedSpan as rejection:
                    batch.rejected.append(Rejection(str(rejection)))
    return batch


def logs_from_json(body: bytes) -> Batch:
    """An empty body is an empty batch."""
    batch = Batch()
    for item, resource, scope in records(loaded(body), "resourceLogs", "scopeLogs", "logRecords"):
        try:
            _add(batch, _from_json(item, resource, scope))
        except RejectedSpan as rejection:
            batch.rejected.append(Rejection(str(rejection)))
    return batch


def _add(batch: Batch, span: ReceivedSpan | None) -> None:
    if span is not None:
        batch.spans.append(span)


def _from_protobuf(record: LogRecord, resource: Resource, scope: Scope) -> ReceivedSpan | None:
    return reward_span(
        record.event_name,
        _trace_id(record.trace_id),
        parent_id(record.span_id),
        record.time_unix_nano or record.observed_time_unix_nano or None,
        protobuf_values.attributes(record.attributes),
        resource,
        scope,
    )


def _from_json(item: Mapping[str, Any] | None, resource: Resource, scope: Scope) -> ReceivedSpan | None:
    if item is None:
        raise RejectedSpan("a log record is no object")
    return reward_span(
        text(item, "eventName"),
        _trace_id(from_hex(item.get("traceId"), "trace_id")),
        parent_id(from_hex(item.get("spanId"), "span_id")),
        time(item, "timeUnixNano") or time(item, "observedTimeUnixNano"),
        json_values.attributes(item),
        resource,
        scope,
    )


def _trace_id(raw: bytes) -> str:
    """A log record need not belong to a trace."""
    return required_id(raw, TRACE_ID_BYTES, "trace_id") if any(raw) else ""
