"""Sampling fields of protocols that are not handed on as they came: their types are checked here."""

from collections.abc import Mapping
from typing import Any

from sessions_app.errors import InvalidSampling

_COUNTS = ("max_tokens", "max_output_tokens")
_NUMBERS = ("temperature", "top_p", "top_k", "min_p")


def check_sampling(body: Mapping[str, Any]) -> None:
    """Raises InvalidSampling for a limit that is no count or a number that is none. Null means not given."""
    for name in _COUNTS:
        value = body.get(name)
        if value is not None and (type(value) is not int or value < 1):
            raise InvalidSampling(f"{name} must be a whole number of at least 1")
    for name in _NUMBERS:
        value = body.get(name)
        if value is not None and type(value) not in (int, float):
            raise InvalidSampling(f"{name} must be a number")
