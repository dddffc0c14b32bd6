"""Ids of traces and spans: of exact length, not all zeros, written as lower-case hex."""

from trainer_export.traces.otlp.batch import RejectedSpan

TRACE_ID_BYTES = 16
SPAN_ID_BYTES = 8


def required_id(raw: bytes, size: int, name: str) -> str:
    """The id as hex; a wrong length or all zeros rejects the span."""
    if len(raw) != size:
        raise RejectedSpan(f"{name} has {len(raw)} bytes instead of {size}")
    if not any(raw):
        raise RejectedSpan(f"{name} is all zeros")
    return raw.hex()


def parent_id(raw: bytes) -> str | None:
    """Empty and all zeros mean: a root."""
    return required_id(raw, SPAN_ID_BYTES, "parent_span_id") if any(raw) else None


def from_hex(value: object, name: str) -> bytes:
    """Bytes of hex text of any case; missing is empty."""
    if value is None:
        return b""
    try:
        if isinstance(value, str) and value.isalnum():
            return bytes.fromhex(value)
    except ValueError:
        pass
    if value == "":
        return b""
    raise RejectedSpan(f"{name} is no hex text")
