"""Values that a proxy recorded as Python text (`"[1, 2]"`): text that is no literal stays text."""

import ast
from typing import Any


def evaluated(value: Any) -> Any:
    """The value itself, or what its text stands for. Never runs code."""
    if not isinstance(value, str):
        return value
    try:
        return ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return value


def id_list(value: Any) -> list[int]:
    """A list of whole numbers (booleans pass, tuples do not), or []."""
    ids = evaluated(value)
    return ids if isinstance(ids, list) and all(isinstance(item, int) for item in ids) else []
