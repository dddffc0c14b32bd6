"""One request body -> one batch: decompress within the limit, then decode by content type."""

from collections.abc import Callable

from trainer_export.traces.otlp.batch import Batch
from trainer_export.traces.otlp.compression import decompressed
from trainer_export.traces.otlp.encoding import Encoding, encoding_of
from trainer_export.traces.otlp.json_traces import traces_from_json
from trainer_export.traces.otlp.logs import logs_from_json, logs_from_protobuf
from trainer_export.traces.otlp.protobuf_traces import traces_from_protobuf

DEFAULT_MAX_BYTES = 20 * 1024 * 1024

Decode = Callable[[bytes], Batch]

_TRACES: dict[Encoding, Decode] = {Encoding.PROTOBUF: traces_from_protobuf, Encoding.JSON: traces_from_json}
_LOGS: dict[Encoding, Decode] = {Encoding.PROTOBUF: logs_from_protobuf, Encoding.JSON: logs_from_json}


def decode_traces(
    body: bytes, content_type: str, content_encoding: str = "", max_bytes: int = DEFAULT_MAX_BYTES
) -> Batch:
    """Raises UnsupportedMediaType (415), BodyTooLarge (413) or BadRequest (400)."""
    return _TRACES[encoding_of(content_type)](decompressed(body, content_encoding, max_bytes))


def decode_logs(
    body: bytes, content_type: str, content_encoding: str = "", max_bytes: int = DEFAULT_MAX_BYTES
) -> Batch:
    """Reward records only. Raises what `decode_traces` raises."""
    return _LOGS[encoding_of(content_type)](decompressed(body, content_encoding, max_bytes))
