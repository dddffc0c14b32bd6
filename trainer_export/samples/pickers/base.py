"""What a picker is, and the registry of the built-in ones.

A picker chooses which leaves become rows. It is a pure selection: it returns some of the very objects it was
given, each at most once, in the order it wants, and changes none of them.
"""

from collections.abc import Callable

from trainer_export.samples.sample import Sample
from trainer_export.samples.values import JsonObject

Picker = Callable[[list[Sample], JsonObject], list[Sample]]
"""Called as picker(leaves in commit order, session metadata)."""

PICKERS: dict[str, Picker] = {}
"""Built-in pickers by the name that settings and requests use."""


def picker(function: Picker) -> Picker:
    """Registers a built-in picker under the function's name."""
    PICKERS[function.__name__] = function
    return function
