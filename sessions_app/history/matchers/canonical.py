"""The canonical text of a JSON value: equal exactly when the values are, under one rule for numbers.

Strings carry their length, so no value can imitate another. Where a value has no such text (NaN, nesting
beyond MAX_DEPTH, no JSON) NoCanonicalForm says so and the message gets no key.
"""

from collections.abc import Callable
from decimal import Decimal
from hashlib import blake2b
from typing import Any

from sessions_app.history.matchers.base import KEY_BYTES

MAX_DEPTH = 400
"""Levels of nesting that are read. A constant, so that the answer does not depend on the caller's stack."""

NumberText = Callable[[Any], str]
"""Text of a bool, int, float or Decimal under a rule for numbers."""


class NoCanonicalForm(Exception):
    """The value has no canonical text under this rule."""


def digest(text: str) -> bytes:
    """16 bytes for a canonical text; lone surrogates are kept apart."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=KEY_BYTES).digest()


def canonical(value: Any, number: NumberText) -> str:
    """Canonical text of a JSON value."""
    if type(value) is str:
        return f"s{len(value)}:{value}"
    if value is None:
        return "z"
    pieces: list[str] = []
    _write(value, number, pieces, 0)
    return "".join(pieces)


def _write(value: Any, number: NumberText, out: list[str], depth: int) -> None:
    kind = type(value)
    if kind is str:
        out.append(f"s{len(value)}:{value}")
    elif value is None:
        out.append("z")
    elif depth > MAX_DEPTH:
        raise NoCanonicalForm
    elif kind is list:
        out.append("[")
        for item in value:
            _write(item, number, out, depth + 1)
        out.append("]")
    elif kind is dict:
        _write_object(value, number, out, depth)
    elif kind in (bool, int, float, Decimal):
        out.append(number(value))
    else:
        raise NoCanonicalForm


def _write_object(value: dict[Any, Any], number: NumberText, out: list[str], depth: int) -> None:
    if not all(type(name) is str for name in value):
        raise NoCanonicalForm
    out.append("{")
    for name in sorted(value):
        out.append(f"s{len(name)}:{name}")
        _write(value[name], number, out, depth + 1)
    out.append("}")


def lenient_number(value: Any) -> str:
    """Numbers as Python's `==` sees them: 1, 1.0 and True are one. Raises for NaN, which equals nothing."""
    if isinstance(value, float):
        if value != value:
            raise NoCanonicalForm
        if not value.is_integer():
            return f"n{value.hex()};"
    elif isinstance(value, Decimal):
        raise NoCanonicalForm
    return f"n{int(value):x};"


def typed_number(value: Any) -> str:
    """Numbers with bool, integer and float kept apart. Raises for NaN."""
    if value is True or value is False:
        return "t" if value else "f"
    if isinstance(value, int):
        return f"i{value:x};"
    if value != value or isinstance(value, Decimal):
        raise NoCanonicalForm
    return f"d{value.hex() if value else 0};"


def refuse_number(value: Any) -> str:
    """For places where a number or bool makes the rule no equivalence."""
    raise NoCanonicalForm


def decimal_text(value: Decimal) -> str:
    """One text for all spellings of a decimal: 1, 1.0 and 10e-1 are the same, no digit is lost."""
    if not value:
        return "0"
    mantissa, exponent = f"{value:E}".split("E")
    return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}E{exponent}"
