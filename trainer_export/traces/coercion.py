"""The reference's lax conversions of loosely typed values.

Its data model is validated by a library that converts where it can ("1.5" is a number, a list of mixed
numbers becomes a list of one type). Output follows these conversions, so they are part of the rules.
"""

from collections.abc import Callable
from typing import Any

from trainer_export.traces.reference import ValidationError
from trainer_export.traces.span import AttributeValue

_TRUE = frozenset({"1", "on", "t", "true", "y", "yes"})
_FALSE = frozenset({"0", "off", "f", "false", "n", "no"})


def to_float(value: Any, where: str) -> float:
    """Numbers, booleans and numeric text."""
    if isinstance(value, bool | int | float | str):
        try:
            return float(value)
        except (ValueError, OverflowError):
            pass
    raise ValidationError(f"{where}: Input should be a valid number, got {type(value).__name__}")


def to_text(value: Any, where: str) -> str:
    """Text only."""
    if isinstance(value, str):
        return value
    raise ValidationError(f"{where}: Input should be a valid string, got {type(value).__name__}")


def to_int(value: Any, where: str) -> int:
    """Whole numbers, also as booleans, whole floats and text."""
    try:
        if isinstance(value, float) and not value.is_integer():
            raise ValueError
        if isinstance(value, bool | int | float | str):
            return int(value)
    except (ValueError, OverflowError):
        pass
    raise ValidationError(f"{where}: Input should be a valid integer, got {type(value).__name__}")


def _to_bool(value: Any, where: str) -> bool:
    if value in (0, 1):
        return bool(value)
    if isinstance(value, str) and value.lower() in _TRUE | _FALSE:
        return value.lower() in _TRUE
    raise ValidationError(f"{where}: Input should be a valid boolean")


def attribute(value: Any, where: str) -> AttributeValue:
    """A scalar as it is, or a list of scalars brought to one type."""
    if isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return _one_type(list(value), where)
    raise ValidationError(f"{where}: Input should be text, a number, a boolean or a list of one of them")


def _one_type(values: list[Any], where: str) -> AttributeValue:
    """Lists of one type stay; mixed ones become the first type that takes every item."""
    kinds = {type(value) for value in values}
    if len(kinds) <= 1 and kinds <= {str, bool, int, float}:
        return values
    if kinds == {int, float}:
        return [float(value) for value in values]
    converters: tuple[Callable[[Any, str], Any], ...] = (_to_bool, to_int, to_float)
    for convert in converters:
        try:
            return [convert(value, where) for value in values]
        except ValidationError:
            continue
    raise ValidationError(f"{where}: Input should be a list of one type")
