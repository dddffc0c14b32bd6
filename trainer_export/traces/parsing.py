"""Span JSON -> Span. Missing ids and names get what the reference gives spans made from attributes only.

Random ids of the reference become ids derived from the position, so that the same input gives the same
output.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from trainer_export.traces.coercion import attribute, to_float, to_int, to_text
from trainer_export.traces.names import VIRTUAL
from trainer_export.traces.reference import ValidationError
from trainer_export.traces.span import Attributes, Span

_NANOSECONDS_ABOVE = 1_000_000_000_000


def parse_spans(source: Any) -> list[Span]:
    """A list of span objects, order kept; spans that are read already stay as they are."""
    if not isinstance(source, list):
        raise ValidationError(f"spans: Input should be a valid list, got {type(source).__name__}")
    return [
        item if isinstance(item, Span) else parse_span(item, position) for position, item in enumerate(source)
    ]


def parse_span(item: Any, position: int) -> Span:
    """One span object; unknown keys are ignored."""
    where = f"spans[{position}]"
    if not isinstance(item, Mapping):
        raise ValidationError(f"{where}: Input should be an object, got {type(item).__name__}")
    status = _object(item, "status", where)
    parent = item.get("parent_id")
    return Span(
        span_id=_text(item, "span_id", where, "") or f"{position:016x}",
        parent_id=None if parent is None else to_text(parent, f"{where}.parent_id"),
        name=_text(item, "name", where, VIRTUAL),
        attributes=_attributes(item, where),
        start_time=_seconds(item, "start_time", where),
        end_time=_seconds(item, "end_time", where),
        sequence_id=to_int(item.get("sequence_id") or 0, f"{where}.sequence_id"),
        trace_id=_text(item, "trace_id", where, ""),
        rollout_id=_text(item, "rollout_id", where, ""),
        attempt_id=_text(item, "attempt_id", where, ""),
        status_code=_text(status, "status_code", f"{where}.status", "OK"),
        status_description=status.get("description"),
        events=_objects(item, "events", where),
        links=_objects(item, "links", where),
        resource=_object(_object(item, "resource", where), "attributes", f"{where}.resource"),
    )


def _text(item: Mapping[str, Any], key: str, where: str, default: str) -> str:
    value = item.get(key)
    return default if value is None else to_text(value, f"{where}.{key}")


def _object(item: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    value = item.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValidationError(f"{where}.{key}: Input should be an object, got {type(value).__name__}")
    return value


def _objects(item: Mapping[str, Any], key: str, where: str) -> tuple[Mapping[str, Any], ...]:
    value = item.get(key)
    if value is None:
        return ()
    if (
        not isinstance(value, Sequence)
        or isinstance(value, str)
        or not all(isinstance(x, Mapping) for x in value)
    ):
        raise ValidationError(f"{where}.{key}: Input should be a list of objects")
    return tuple(value)


def _attributes(item: Mapping[str, Any], where: str) -> Attributes:
    raw = _object(item, "attributes", where)
    return {key: attribute(value, f"{where}.attributes.{key}") for key, value in raw.items()}


def _seconds(item: Mapping[str, Any], key: str, where: str) -> float | None:
    """Whole numbers are read as OpenTelemetry writes them: nanoseconds above 1e12, and 0 for unknown."""
    value = item.get(key)
    if value is None or (type(value) is int and value == 0):
        return None
    seconds = to_float(value, f"{where}.{key}")
    return value / 1e9 if type(value) is int and value > _NANOSECONDS_ABOVE else seconds
