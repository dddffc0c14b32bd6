"""JSON that a model wrote, read and written again without touching its numbers.

Keys come out sorted, as OpenAI-compatible servers send arguments. Invariants: `dump(load(text))` has every
number in the spelling of the text, and every string survives UTF-8 (lone surrogates stay escaped).
"""

import json
from typing import Any


class Number(str):
    """A number as it was spelled."""

    __slots__ = ()


_DECODER = json.JSONDecoder(parse_float=Number, parse_int=Number, parse_constant=Number)


def load(text: str) -> tuple[Any, int]:
    """The JSON value at the start of a text (white space may precede it) and where it ends.

    Raises ValueError or RecursionError."""
    start = len(text) - len(text.lstrip())
    return _DECODER.raw_decode(text, start)


def dump(value: Any) -> str:
    """JSON text, keys sorted, non-ASCII kept."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_string(key)}: {dump(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(dump(item) for item in value) + "]"
    return _string(value) if isinstance(value, str) else json.dumps(value)


def _string(text: str) -> str:
    spelled = json.dumps(text, ensure_ascii=False)
    try:
        spelled.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(text)
    return spelled
