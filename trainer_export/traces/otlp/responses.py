"""Answers in the encoding of the request: full success, partial success with reasons, or a Status for an
error.
"""

import json
from collections.abc import Sequence

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from trainer_export.traces.otlp.batch import Rejection, summary
from trainer_export.traces.otlp.encoding import Encoding

_CODES = {400: 3, 401: 16, 403: 7, 404: 5, 413: 8, 415: 3, 429: 8, 503: 14}
_UNKNOWN = 2


def traces_response(encoding: Encoding, rejected: Sequence[Rejection]) -> bytes:
    """`partial_success` is unset when nothing was rejected."""
    if encoding is Encoding.JSON:
        return _json_response(rejected, "rejectedSpans")
    response = ExportTraceServiceResponse()
    if rejected:
        response.partial_success.rejected_spans = len(rejected)
        response.partial_success.error_message = summary(rejected)
    return response.SerializeToString()


def logs_response(encoding: Encoding, rejected: Sequence[Rejection]) -> bytes:
    """The same for log records."""
    if encoding is Encoding.JSON:
        return _json_response(rejected, "rejectedLogRecords")
    response = ExportLogsServiceResponse()
    if rejected:
        response.partial_success.rejected_log_records = len(rejected)
        response.partial_success.error_message = summary(rejected)
    return response.SerializeToString()


def status_body(encoding: Encoding, http_status: int, message: str) -> bytes:
    """`google.rpc.Status`; the code follows the HTTP status."""
    code = _CODES.get(http_status, _UNKNOWN)
    if encoding is Encoding.JSON:
        return json.dumps({"code": code, "message": message}).encode()
    return _status_message(code, message)


def _status_message(code: int, message: str) -> bytes:
    """`google.rpc.Status` by hand, its two fields being all that is used: code (1) and message (2)."""
    text = message.encode()
    return bytes((0x08, code, 0x12)) + _varint(len(text)) + text


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*parts, number))


def _json_response(rejected: Sequence[Rejection], key: str) -> bytes:
    """64-bit numbers are text in JSON."""
    if not rejected:
        return b"{}"
    return json.dumps(
        {"partialSuccess": {key: str(len(rejected)), "errorMessage": summary(rejected)}}
    ).encode()
