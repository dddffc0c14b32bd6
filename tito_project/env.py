"""One typed reader of environment variables. Nonsense is an error naming the variable, never a default."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ImproperlyConfigured

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})


class Environment:
    """Reads variables of one mapping and remembers which were set, so that the admin shows them as pinned."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self.pinned: set[str] = set()

    def _raw(self, name: str) -> str | None:
        """The stripped value; None when unset or empty."""
        value = self._values.get(name, "").strip()
        if not value:
            return None
        self.pinned.add(name)
        return value

    def text(self, name: str, default: str) -> str:
        """Any text."""
        value = self._raw(name)
        return default if value is None else value

    def optional_text(self, name: str) -> str | None:
        """Any text, or None when unset."""
        return self._raw(name)

    def listing(self, name: str, default: str) -> tuple[str, ...]:
        """Comma-separated, blanks around the items dropped."""
        return tuple(item.strip() for item in self.text(name, default).split(",") if item.strip())

    def shares(self, name: str, allowed: tuple[str, ...]) -> dict[str, float]:
        """Comma-separated `word=share` pairs with words of a closed list, such as `fork=0.2`; {} when
        unset."""
        shares = {}
        for pair in self.listing(name, ""):
            word, _, share = pair.partition("=")
            if word.strip() not in allowed:
                raise ImproperlyConfigured(
                    f"{name}={pair!r} does not begin with one of: {', '.join(allowed)}"
                )
            shares[word.strip()] = self._bounded_share(name, pair, share)
        return shares

    @staticmethod
    def _bounded_share(name: str, pair: str, text: str) -> float:
        try:
            share = float(text)
        except ValueError:
            share = math.nan
        if not 0 <= share <= 1:
            raise ImproperlyConfigured(f"{name}={pair!r} must give a share between 0 and 1")
        return share

    def choice(self, name: str, default: str, allowed: tuple[str, ...]) -> str:
        """One of a closed list."""
        value = self.text(name, default)
        if value not in allowed:
            raise ImproperlyConfigured(f"{name}={value!r} is not one of: {', '.join(allowed)}")
        return value

    def flag(self, name: str, default: bool) -> bool:
        """1/true/yes/on or 0/false/no/off, any case."""
        value = self._raw(name)
        if value is None:
            return default
        if value.lower() in _TRUE:
            return True
        if value.lower() in _FALSE:
            return False
        raise ImproperlyConfigured(f"{name}={value!r} is neither true nor false (use 1/0, on/off)")

    def integer(self, name: str, default: int, *, least: int = 0, most: int | None = None) -> int:
        """A whole number within bounds."""
        return self._bounded_integer(name, self._raw(name), default, least, most)

    def optional_integer(self, name: str, *, least: int = 0) -> int | None:
        """A whole number, or None when unset."""
        value = self._raw(name)
        return None if value is None else self._bounded_integer(name, value, 0, least, None)

    def number(self, name: str, default: float, *, least: float = 0.0) -> float:
        """A finite number of at least `least`."""
        value = self._raw(name)
        return default if value is None else self._bounded_number(name, value, least)

    def optional_number(self, name: str, *, least: float = 0.0) -> float | None:
        """A finite number, or None when unset."""
        value = self._raw(name)
        return None if value is None else self._bounded_number(name, value, least)

    def optional_url(self, name: str) -> str | None:
        """An address of http or https; None when unset or empty."""
        value = self.optional_text(name)
        if value is not None and not re.match(r"https?://[^/\s]+", value):
            raise ImproperlyConfigured(f"{name} is no http or https address")
        return value

    def json_object(self, name: str) -> dict[str, Any]:
        """A JSON object; {} when unset."""
        value = self._raw(name)
        if value is None:
            return {}
        try:
            parsed = json.loads(value)
        except ValueError as error:
            raise ImproperlyConfigured(f"{name} is not JSON: {error}") from None
        if not isinstance(parsed, dict):
            raise ImproperlyConfigured(f"{name} must be a JSON object, got {type(parsed).__name__}")
        return parsed

    @staticmethod
    def _bounded_integer(name: str, value: str | None, default: int, least: int, most: int | None) -> int:
        if value is None:
            return default
        try:
            parsed = int(value)
        except ValueError:
            raise ImproperlyConfigured(f"{name}={value!r} is not a whole number") from None
        if parsed < least or (most is not None and parsed > most):
            bounds = f"at least {least}" if most is None else f"between {least} and {most}"
            raise ImproperlyConfigured(f"{name}={parsed} must be {bounds}")
        return parsed

    @staticmethod
    def _bounded_number(name: str, value: str, least: float) -> float:
        try:
            parsed = float(value)
        except ValueError:
            raise ImproperlyConfigured(f"{name}={value!r} is not a number") from None
        if not math.isfinite(parsed) or parsed < least:
            raise ImproperlyConfigured(f"{name}={value} must be a finite number of at least {least:g}")
        return parsed
