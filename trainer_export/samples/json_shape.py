"""A validator for the part of JSON Schema that the native schema uses.

Long lists of numbers are checked as arrays, so a row of 100,000 tokens costs milliseconds. Lists may be
given as arrays already.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from trainer_export.samples.values import JsonObject

_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list | np.ndarray),
    "null": lambda value: value is None,
}
_KINDS = {"integer": "iu", "number": "iuf"}


def mismatches(schema: JsonObject, value: Any, where: str = "sample") -> Iterator[str]:
    """What is wrong with a value, one line each; nothing if it fits."""
    if "oneOf" in schema:
        yield from _one_of(schema["oneOf"], value, where)
        return
    if not _has_type(schema, value):
        yield f"{where}: expected {schema['type']}, got {type(value).__name__}"
        return
    if not _is_allowed(schema, value):
        yield f"{where}: {value!r:.80} is not one of the allowed values"
        return
    yield from _bounds(schema, value, where)
    if isinstance(value, dict):
        yield from _members(schema, value, where)
    if isinstance(value, list | np.ndarray):
        yield from _items(schema, value, where)


def _one_of(options: list[JsonObject], value: Any, where: str) -> Iterator[str]:
    found = [list(mismatches(option, value, where)) for option in options]
    if all(found):
        yield from min(found, key=len)


def _has_type(schema: JsonObject, value: Any) -> bool:
    wanted = schema.get("type", [])
    names = [wanted] if isinstance(wanted, str) else wanted
    return not names or any(_TYPES[name](value) for name in names)


def _is_allowed(schema: JsonObject, value: Any) -> bool:
    allowed = schema.get("enum", [schema["const"]] if "const" in schema else None)
    return allowed is None or any(value == item and type(value) is type(item) for item in allowed)


def _bounds(schema: JsonObject, value: Any, where: str) -> Iterator[str]:
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield f"{where}: {value!r:.80} does not match {schema['pattern']}"
    if _TYPES["number"](value) and not _in_range(schema, value):
        yield f"{where}: {value} is out of range"


def _in_range(schema: JsonObject, value: Any) -> bool:
    return not (
        ("minimum" in schema and value < schema["minimum"])
        or ("maximum" in schema and value > schema["maximum"])
        or ("exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"])
    )


def _members(schema: JsonObject, value: JsonObject, where: str) -> Iterator[str]:
    known = schema.get("properties", {})
    for name in schema.get("required", []):
        if name not in value:
            yield f"{where}: {name} is missing"
    rest = schema.get("additionalProperties", {})
    for name, item in value.items():
        if "propertyNames" in schema:
            yield from mismatches(schema["propertyNames"], name, f"{where}.{name}")
        if name not in known and rest is False:
            yield f"{where}: {name} is unknown"
        else:
            yield from mismatches(known.get(name, rest), item, f"{where}.{name}")


def _items(schema: JsonObject, value: Any, where: str) -> Iterator[str]:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        yield f"{where}: {len(value)} items"
    items = schema.get("items", {})
    if items and not _fits_at_once(items, value):
        for index, item in enumerate(value):
            plain = item.item() if isinstance(item, np.generic) else item
            yield from mismatches(items, plain, f"{where}[{index}]")


def _fits_at_once(items: JsonObject, value: Any) -> bool:
    """Whether all items are numbers within bounds, seen as one array."""
    array = np.asarray(value) if isinstance(value, np.ndarray) or _all_numbers(value) else None
    if array is None or array.ndim != 1:
        return False
    if "enum" in items:
        return array.dtype.kind in "iu" and bool(np.isin(array, items["enum"]).all())
    kinds = _KINDS.get(str(items.get("type")), "")
    in_range = "minimum" not in items or bool(np.all(array >= items["minimum"]))
    return array.dtype.kind in kinds and in_range


def _all_numbers(value: list[Any]) -> bool:
    return set(map(type, value)) <= {int, float}
