"""Tool-call arguments: a string or an object, brought to one canonical text or to none.

Invariant: numbers are compared as written, digit by digit; a text with a duplicate key, NaN, Infinity or a
syntax error has no such form and is compared as it stands.
"""

import json
from decimal import Decimal, InvalidOperation
from json import JSONDecoder
from math import isfinite
from typing import Any, NoReturn

from sessions_app.history.matchers.canonical import NoCanonicalForm, canonical, decimal_text

_EMPTY_OBJECT = "{}"
_EXACT_INTEGERS = 2**53


def loose_form(arguments: Any) -> str | None:
    """Arguments with numbers as exact decimals (1 = 1.0), bools apart; None if they are no JSON object."""
    return _object_form(arguments, _LOOSE_DECODER, _decimal_number)


def typed_form(arguments: Any) -> str | None:
    """Arguments with integers and floats kept apart (1 is not 1.0); None if they are no JSON object."""
    return _object_form(arguments, _TYPED_DECODER, _typed_number)


def read_text(arguments: Any) -> str | None:
    """What a client's JSON reader makes of arguments, as text: the last of equal keys, numbers as doubles.

    None where it makes something else than the object, and where nothing is lost.
    """
    try:
        value = _READER.decode(arguments) if type(arguments) is str else arguments
        text = json.dumps(value, allow_nan=False) if type(value) is dict else None
    except (ValueError, TypeError, RecursionError, OverflowError):
        return None
    return text if text is not None and loose_form(text) != loose_form(arguments) else None


def regular_form(arguments: dict[str, Any]) -> str:
    """`loose_form` of an object, refused where `==` and `loose_form` disagree on some other object.

    They disagree on bools, 0, 1 and on integral values that a float cannot spell exactly.
    """
    return canonical(arguments, _regular_number)


def _object_form(arguments: Any, decoder: JSONDecoder, number: Any) -> str | None:
    if arguments is None or arguments == "":
        return _EMPTY_OBJECT
    try:
        value = decoder.decode(arguments) if type(arguments) is str else arguments
        return canonical(value, number) if type(value) is dict else None
    except (ValueError, InvalidOperation, RecursionError, NoCanonicalForm):
        return None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("duplicate key")
    return value


def _double(digits: str) -> int | float:
    """An integer, rounded where a double would round it."""
    value = int(digits)
    return value if abs(value) <= _EXACT_INTEGERS else float(value)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


_LOOSE_DECODER = JSONDecoder(
    object_pairs_hook=_unique, parse_int=Decimal, parse_float=Decimal, parse_constant=_no_constant
)
_READER = JSONDecoder(parse_int=_double, parse_constant=_no_constant)
_TYPED_DECODER = JSONDecoder(object_pairs_hook=_unique, parse_float=Decimal, parse_constant=_no_constant)


def _decimal_number(value: Any) -> str:
    if value is True or value is False:
        return "t" if value else "f"
    return f"n{decimal_text(_decimal(value))};"


def _typed_number(value: Any) -> str:
    if value is True or value is False:
        return "t" if value else "f"
    return f"i{value:x};" if type(value) is int else f"d{decimal_text(_decimal(value))};"


def _regular_number(value: Any) -> str:
    integral = type(value) is int or (type(value) is float and value.is_integer())
    if type(value) is bool or (integral and (value in (0, 1) or abs(value) > _EXACT_INTEGERS)):
        raise NoCanonicalForm
    return _decimal_number(value)


def _decimal(value: Any) -> Decimal:
    if type(value) is float:
        if not isfinite(value):
            raise NoCanonicalForm
        return Decimal(repr(value))
    return Decimal(value)
