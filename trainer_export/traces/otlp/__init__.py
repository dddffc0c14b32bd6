"""OTLP over HTTP, the pure part: request bodies -> spans and reasons for rejection, outcomes -> response
bodies.

Invariant: one bad span never costs the others; only a body that cannot be read as a whole is an error. The
HTTP view and the storage of spans are elsewhere.
"""

from trainer_export.traces.otlp.batch import Batch, Rejection
from trainer_export.traces.otlp.compression import GZIP, answered
from trainer_export.traces.otlp.encoding import Encoding, encoding_of
from trainer_export.traces.otlp.received import ReceivedSpan
from trainer_export.traces.otlp.requests import DEFAULT_MAX_BYTES, decode_logs, decode_traces
from trainer_export.traces.otlp.responses import logs_response, status_body, traces_response
from trainer_export.traces.otlp.routing import Route, route_of, route_of_headers

__all__ = [
    "DEFAULT_MAX_BYTES",
    "GZIP",
    "Batch",
    "Encoding",
    "ReceivedSpan",
    "Rejection",
    "Route",
    "answered",
    "decode_logs",
    "decode_traces",
    "encoding_of",
    "logs_response",
    "route_of",
    "route_of_headers",
    "status_body",
    "traces_response",
]
