"""Typed reading of JSON arguments. A known key with a bad value is refused by name; unknown keys are the
caller's to judge.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sessions_app.errors import InvalidArgument
from sessions_app.json_text import loads

MOST_TEXT = 500
_INT32 = 2**31


class Arguments:
    """Reads one JSON object key by key; null is as good as absent."""

    def __init__(self, values: Mapping[str, Any], where: str = "") -> None:
        self._values = values
        self._where = where

    @classmethod
    def of_body(cls, body: bytes) -> "Arguments":
        """The object of a request body; an empty body is {}. Raises InvalidJson and InvalidArgument."""
        return cls.of(loads(body) if body.strip() else {}, "the body")

    @classmethod
    def of(cls, value: Any, name: str, where: str = "") -> "Arguments":
        """The object of a parsed value. `where`: put in front of the names in error texts."""
        if not isinstance(value, dict):
            raise InvalidArgument(f"{name} must be a JSON object, got {type(value).__name__}")
        return cls(value, where)

    def refuse_unknown(self, known: Iterable[str]) -> None:
        """Raises InvalidArgument for keys that would be ignored."""
        names = sorted(known)
        unknown = sorted(str(name) for name in self._values if name not in names)
        if unknown:
            shown = ", ".join(repr(name[:40]) for name in unknown[:5])
            raise InvalidArgument(f"{self._where}unknown: {shown}; known are {', '.join(names)}")

    def given(self, name: str) -> bool:
        """Whether a key has a value."""
        return self._values.get(name) is not None

    def any(self, name: str) -> Any:
        """The value as it is."""
        return self._values.get(name)

    def text(self, name: str, default: str | None = None) -> str | None:
        """A text that Postgres can hold."""
        value = self._values.get(name)
        if value is None:
            return default
        if not is_text(value):
            raise self._bad(name, f"a text of 1 to {MOST_TEXT} characters without NUL")
        return str(value)

    def choice(self, name: str, allowed: Sequence[str], default: str) -> str:
        """One of a closed list."""
        value = self._values.get(name)
        if value is None:
            return default
        if not isinstance(value, str) or value not in allowed:
            raise self._bad(name, f"one of {', '.join(allowed)}")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        """true or false."""
        value = self._values.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self._bad(name, "true or false")
        return value

    def integer(self, name: str, *, least: int = 0, most: int = _INT32 - 1) -> int | None:
        """A whole number within bounds."""
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self._bad(name, f"a whole number from {least} to {most}")
        return value

    def number(self, name: str, default: float | None = None) -> float | None:
        """A finite number that a float holds."""
        value = self._values.get(name)
        if value is None:
            return default
        if not is_number(value):
            raise self._bad(name, "a finite number")
        return float(value)

    def mapping(self, name: str) -> dict[str, Any] | None:
        """An object."""
        value = self._values.get(name)
        if value is not None and not isinstance(value, dict):
            raise self._bad(name, "an object")
        return value

    def texts(self, name: str) -> list[str] | None:
        """A list of texts; one text stands for a list of it."""
        value = self._values.get(name)
        if value is None:
            return None
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list) or not all(is_text(one) for one in values):
            raise self._bad(name, "a list of texts")
        return values

    def _bad(self, name: str, expected: str) -> InvalidArgument:
        return InvalidArgument(f"{self._where}{name} must be {expected}")


def is_text(value: Any) -> bool:
    """Whether a value is a text that Postgres can hold, of a sane length."""
    if not isinstance(value, str) or not 0 < len(value) <= MOST_TEXT or "\x00" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_number(value: Any) -> bool:
    """Whether a value is a number that a float holds."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False
