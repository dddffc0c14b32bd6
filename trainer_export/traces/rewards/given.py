"""A reward that a call got."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Given:
    """What it is, and where from."""

    value: Any
    """As recorded."""
    by: str
    """Id of the span that carries it."""
