"""JSON as it travels to and from engines. `json_text` is the exact form; here is what differs on this wire.

Replies are mostly logprobs, whose long decimals read the same by orjson and by `json`: only integers beyond
64 bits need the slow road. Bodies may hold NaN or an infinity, which orjson would write as null without a
word.
"""

import json
from collections.abc import Mapping
from typing import Any

import orjson

from sessions_app import json_text

_SHAPES = bytes.maketrans(b"123456789,:[-\t\r\n", b"000000000       ")
"""Digits look alike, and so does all that may stand before a number."""
_HUGE_INTEGER = b" " + b"0" * 19
_CONVERSATION = frozenset({"messages", "tools", "input_ids"})


def loads(raw: bytes) -> Any:
    """The value of an engine's JSON text. Raises ValueError when Python's `json` cannot read it either."""
    if not _has_huge_integer(raw):
        try:
            return orjson.loads(raw)
        except orjson.JSONDecodeError:
            pass
    try:
        return json.loads(raw.decode())
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _has_huge_integer(raw: bytes) -> bool:
    """Whether 19 digits in a row stand anywhere but in a fraction (in a text, too: that only costs time)."""
    return _HUGE_INTEGER in b" %b" % raw.translate(_SHAPES)


def dumps_body(body: Mapping[str, Any], *, odd_numbers: bool = False) -> bytes:
    """An outgoing body. Its parameters are searched for non-finite numbers; the conversation only where the
    client's body may hold some (`odd_numbers`).
    """
    searched = (value for key, value in body.items() if odd_numbers or key not in _CONVERSATION)
    if any(map(json_text.has_non_finite, searched)):
        return json.dumps(body, separators=(",", ":"), default=_listed).encode()
    return json_text.dumps(body)


def _listed(array: Any) -> Any:
    return array.tolist()
