"""Reading OTLP/JSON objects: lowerCamelCase keys, unknown ones ignored, null like missing, 64-bit numbers
as text too.
"""

from collections.abc import Mapping
from typing import Any

from trainer_export.traces.otlp.batch import RejectedSpan
from trainer_export.traces.otlp.cleaning import clean_text, whole_number

_UINT64 = 2**64


def text(item: Mapping[str, Any], key: str) -> str:
    """Cleaned text, "" when missing."""
    found = item.get(key)
    if found is None:
        return ""
    if not isinstance(found, str):
        raise RejectedSpan(f"{key} is no text")
    return clean_text(found)


def number(item: Mapping[str, Any], key: str) -> int:
    """A whole number that fits 64 bits without a sign, 0 when missing."""
    found = item.get(key)
    if found is None:
        return 0
    value = whole_number(found)
    if value is None or not 0 <= value < _UINT64:
        raise RejectedSpan(f"{key} is no whole number of 64 bits")
    return value


def time(item: Mapping[str, Any], key: str) -> int | None:
    """Nanoseconds; 0 and missing mean unknown."""
    return number(item, key) or None


def enum(item: Mapping[str, Any], key: str, names: tuple[str, ...], prefix: str) -> int:
    """Numbers as the protocol demands, names as lenient senders write them; 0 for what is unknown."""
    found = item.get(key)
    if isinstance(found, str):
        name = found.removeprefix(prefix).upper()
        return names.index(name) if name in names else (whole_number(found) or 0)
    return whole_number(found) or 0


def objects(item: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """A list of objects, [] when missing."""
    found = item.get(key)
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(entry, Mapping) for entry in found):
        raise RejectedSpan(f"{key} is no list of objects")
    return found


def one_object(item: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """An object, {} when missing."""
    found = item.get(key)
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise RejectedSpan(f"{key} is no object")
    return found
