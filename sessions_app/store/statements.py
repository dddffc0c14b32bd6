"""Statements as the server wants them: `%(name)s` and `%s` become `$1`, `$2`, … once for each text.

psycopg would translate long statements at every call: it caches none beyond 4 kB or 50 parameters, and the
commit has both.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

Params = Mapping[str, Any] | Sequence[Any]

_PLACEHOLDER = re.compile(r"%(?:%|s|\((\w+)\)s)")


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement with numbered parameters."""

    text: bytes
    names: tuple[str, ...]
    """The parameters in their order; empty where they have no names."""

    def values(self, params: Params) -> Sequence[Any]:
        """The parameters in their order."""
        if isinstance(params, Mapping):
            return [params[name] for name in self.names]
        return params


@lru_cache(256)
def numbered(query: str) -> Statement:
    """The statement of a query in psycopg's spelling."""
    numbers: dict[str, int] = {}
    count = 0

    def number(found: re.Match[str]) -> str:
        nonlocal count
        if found[0] == "%%":
            return "%"
        if found[1] is not None and found[1] in numbers:
            return f"${numbers[found[1]]}"
        count += 1
        if found[1] is not None:
            numbers[found[1]] = count
        return f"${count}"

    text = _PLACEHOLDER.sub(number, query)
    return Statement(text.encode(), tuple(numbers))
