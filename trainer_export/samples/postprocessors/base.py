"""What a post-processor is, and the registry of the built-in ones.

A post-processor gets what the picker kept and returns the rows: it may change masks, rewards and metadata,
replace or drop samples. Fields that count per response token keep the length that `response_length` says.
"""

from collections.abc import Callable

from trainer_export.samples.sample import Sample
from trainer_export.samples.values import JsonObject

Postprocessor = Callable[[list[Sample], JsonObject], list[Sample]]
"""Called as postprocessor(picked samples, session metadata), which holds the driver's metadata as `agent`."""

POSTPROCESSORS: dict[str, Postprocessor] = {}
"""Built-in post-processors by the name that settings and requests use."""

PATTERNED: dict[str, Callable[[str], Postprocessor]] = {}
"""Built-in post-processors that need a value, named as `NAME:VALUE`."""


def postprocessor(name: str) -> Callable[[Postprocessor], Postprocessor]:
    """Registers a built-in post-processor."""

    def register(function: Postprocessor) -> Postprocessor:
        POSTPROCESSORS[name] = function
        return function

    return register
