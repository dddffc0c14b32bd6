"""What an adapter is: a name, the key its input stands under, and a function from input to JSON."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

SPANS = "input_spans"
EVENTS = "input"

Convert = Callable[[Any, Mapping[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class Adapter:
    """One way from recorded data to training data."""

    name: str
    source_key: str
    """The key of a request under which the input stands."""
    convert: Convert
    """Input and options to JSON; raises what the reference raises."""


ADAPTERS: dict[str, Adapter] = {}


def adapter(name: str, source_key: str) -> Callable[[Convert], Convert]:
    """Register a function as an adapter."""

    def register(convert: Convert) -> Convert:
        ADAPTERS[name] = Adapter(name, source_key, convert)
        return convert

    return register
