"""Attribute values of protobuf messages -> Python values."""

from collections.abc import Iterable
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from trainer_export.traces.otlp.cleaning import clean_number, clean_text


def attributes(pairs: Iterable[KeyValue]) -> dict[str, Any]:
    """A repeated key: the last one wins."""
    return {clean_text(pair.key): value(pair.value) for pair in pairs}


def value(recorded: AnyValue) -> Any:
    """Bytes become hex text; an empty value is None. The parser bounds the depth."""
    kind = recorded.WhichOneof("value")
    if kind == "string_value":
        return clean_text(recorded.string_value)
    if kind == "double_value":
        return clean_number(recorded.double_value)
    if kind == "array_value":
        return [value(item) for item in recorded.array_value.values]
    if kind == "kvlist_value":
        return attributes(recorded.kvlist_value.values)
    if kind == "bytes_value":
        return recorded.bytes_value.hex()
    return None if kind is None else getattr(recorded, kind)
