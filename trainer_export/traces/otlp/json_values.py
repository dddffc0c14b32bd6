"""Attribute values of OTLP/JSON -> Python values. One of the `…Value` keys is set; none means null."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from trainer_export.traces.otlp.batch import RejectedSpan
from trainer_export.traces.otlp.cleaning import clean_number, clean_text, whole_number
from trainer_export.traces.otlp.json_fields import objects, one_object

MAX_DEPTH = 64
_NON_FINITE = frozenset({"NaN", "Infinity", "-Infinity"})


def attributes(item: Mapping[str, Any], key: str = "attributes", depth: int = 0) -> dict[str, Any]:
    """A list of key and value; a repeated key: the last one wins."""
    found: dict[str, Any] = {}
    for pair in objects(item, key):
        name = pair.get("key")
        if not isinstance(name, str):
            raise RejectedSpan(f"{key} has an entry without a key")
        found[clean_text(name)] = value(one_object(pair, "value"), depth)
    return found


def value(recorded: Mapping[str, Any], depth: int) -> Any:
    """Bytes become hex text, as in the other encoding."""
    if depth > MAX_DEPTH:
        raise RejectedSpan(f"attributes are nested more than {MAX_DEPTH} levels deep")
    if recorded.get("arrayValue") is not None:
        items = objects(one_object(recorded, "arrayValue"), "values")
        return [value(item, depth + 1) for item in items]
    if recorded.get("kvlistValue") is not None:
        return attributes(one_object(recorded, "kvlistValue"), "values", depth + 1)
    return _scalar(recorded)


def _scalar(recorded: Mapping[str, Any]) -> Any:
    if recorded.get("stringValue") is not None:
        return clean_text(_checked(recorded, "stringValue", str))
    if recorded.get("boolValue") is not None:
        return _checked(recorded, "boolValue", bool)
    if recorded.get("intValue") is not None:
        return _whole(recorded["intValue"])
    if recorded.get("doubleValue") is not None:
        return _double(recorded["doubleValue"])
    if recorded.get("bytesValue") is not None:
        return _bytes(_checked(recorded, "bytesValue", str))
    return None


def _checked(recorded: Mapping[str, Any], key: str, kind: type) -> Any:
    found = recorded[key]
    if not isinstance(found, kind):
        raise RejectedSpan(f"{key} is of the wrong type")
    return found


def _whole(found: Any) -> int:
    number = whole_number(found)
    if number is None or not -(2**63) <= number < 2**63:
        raise RejectedSpan("intValue is no whole number of 64 bits")
    return number


def _double(found: Any) -> float | str:
    if isinstance(found, str) and found in _NON_FINITE:
        return found
    try:
        if not isinstance(found, bool):
            return clean_number(float(found))
    except (TypeError, ValueError, OverflowError):
        pass
    raise RejectedSpan("doubleValue is no number")


def _bytes(found: str) -> str:
    try:
        return base64.b64decode(
            found + "=" * (-len(found) % 4), altchars=b"-_" if {"-", "_"} & set(found) else None
        ).hex()
    except (binascii.Error, ValueError):
        raise RejectedSpan("bytesValue is no base64") from None
