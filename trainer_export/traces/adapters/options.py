"""Options of a request. An unknown name raises TypeError, as calling the reference with it does."""

from collections.abc import Mapping
from typing import Any


def read_options(
    adapter_name: str, options: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """The defaults, overwritten by what was given."""
    for name in options:
        if name not in defaults:
            raise TypeError(f"{adapter_name} got an unexpected keyword argument '{name}'")
    return {**defaults, **options}
