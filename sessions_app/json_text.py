"""JSON in and out without altering a value: fast where that is exact, the standard library elsewhere.

orjson turns integers beyond 64 bit into floats, rounds long decimals and refuses NaN literals and lone
surrogates. A body that may hold such a thing is read by `json`, whose wording also stands in the error
text.
"""

import json
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

import orjson

from sessions_app.errors import InvalidJson

_DIGITS_TO_ZERO = bytes(0x30 if chr(b) in "0123456789." else 0x20 for b in range(256))
_LONG_NUMBER = b"0" * 17
_DECODER = json.JSONDecoder()
_BLANKS = " \t\n\r"


def loads(data: bytes) -> Any:
    """The value of a JSON text. Raises InvalidJson with the words of Python's decoder."""
    if _LONG_NUMBER not in data.translate(_DIGITS_TO_ZERO):
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError:
            pass
    return _loads_exact(data)


def _loads_exact(data: bytes) -> Any:
    try:
        return json.loads(data)
    except json.JSONDecodeError as error:
        raise InvalidJson(f"invalid JSON body: {error}") from None
    except UnicodeDecodeError:
        raise InvalidJson("invalid JSON body: not UTF-8") from None
    except RecursionError:
        raise InvalidJson("invalid JSON body: nested too deeply") from None
    except ValueError as error:
        raise InvalidJson(f"invalid JSON body: {error}") from None


def dumps(value: Any) -> bytes:
    """Compact UTF-8 JSON; values that orjson cannot write are written by `json`, lone surrogates escaped."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
    except TypeError:
        return _dumps_exact(value)


def _dumps_exact(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"), default=_plain).encode()


def _plain(value: Any) -> Any:
    return value.tolist()


def text_of(value: Any) -> str:
    """The same as text, for columns that store JSON."""
    return dumps(value).decode()


class MessageTexts:
    """The text of each message exactly as it stands in a request body."""

    def __init__(self, body: bytes, messages: list[Any]) -> None:
        self._body = body
        self._messages = messages
        self._spans: list[str] | None = None

    def text(self, index: int) -> str:
        """JSON text of one message: the compact spelling where the body has just that, else the client's
        own.
        """
        compact = dumps(self._messages[index])
        if compact in self._body:
            return compact.decode()
        if self._spans is None:
            self._spans = _array_texts(self._body.decode(), "messages")
        return self._spans[index]


def _array_texts(text: str, name: str) -> list[str]:
    """Texts of the elements of a top-level array; the last of equal keys wins, as in the parsed value."""
    found: list[str] = []
    at = _skip_blanks(text, _skip_blanks(text, 0) + 1)
    while text[at] != "}":
        key, at = scanstring(text, at + 1, False)
        at = _skip_blanks(text, _skip_blanks(text, at) + 1)
        if key == name and text[at] == "[":
            found, at = _element_texts(text, at)
        else:
            at = _DECODER.raw_decode(text, at)[1]
        at = _after_comma(text, at)
    return found


def _element_texts(text: str, at: int) -> tuple[list[str], int]:
    elements = []
    at = _skip_blanks(text, at + 1)
    while text[at] != "]":
        end = _DECODER.raw_decode(text, at)[1]
        elements.append(text[at:end])
        at = _after_comma(text, end)
    return elements, at + 1


def _after_comma(text: str, at: int) -> int:
    at = _skip_blanks(text, at)
    return _skip_blanks(text, at + 1) if text[at] == "," else at


def _skip_blanks(text: str, at: int) -> int:
    while text[at] in _BLANKS:
        at += 1
    return at
