"""Values recorded as JSON text, as Python text, or as real nested values."""

import json
from typing import Any

from trainer_export.traces.python_text import evaluated

_OPENING = ("{", "[")


def loaded(value: Any) -> Any:
    """The nested value; None for text that is neither JSON nor a Python literal (it may have been cut)."""
    if not isinstance(value, str):
        return value
    if not value.lstrip().startswith(_OPENING):
        return None
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        literal = evaluated(value)
        return None if isinstance(literal, str) else literal


def loaded_dict(value: Any) -> dict[str, Any]:
    """A dict, {} for anything else."""
    found = loaded(value)
    return found if isinstance(found, dict) else {}


def loaded_list(value: Any) -> list[Any]:
    """A list, [] for anything else."""
    found = loaded(value)
    return found if isinstance(found, list) else []
