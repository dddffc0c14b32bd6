"""JSON in and out without altering a value: fast where that is exact, the standard library elsewhere.

orjson turns integers beyond 64 bit into floats, rounds long decimals and refuses NaN literals and lone
surrogates, and writes NaN and infinities as null. A body that may hold such a thing is read by `json`, whose
wording also stands in the error text; what is stored or passed on is written by `exact`, what is only shown
by `dumps`. Nesting ends at a fixed depth, so that what can be written can be read again on any stack.
"""

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from sessions_app.errors import InvalidJson
from sessions_app.json_spans import elements, member

_DIGITS_TO_ZERO = bytes(0x30 if chr(b) in "0123456789." else 0x20 for b in range(256))
_LONG_NUMBER = b"0" * 17
DEEPEST = 400
"""Levels of nesting that are written; orjson alone stops at 254."""
_TOO_DEEP = "invalid JSON body: nested too deeply"


class RawJson:
    """JSON text that stands in a value just as it is."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


def loads(data: bytes) -> Any:
    """The value of a JSON text. Raises InvalidJson with the words of Python's decoder."""
    return parsed(data)[0]


def parsed(data: bytes) -> tuple[Any, bool]:
    """What `loads` gives, and whether a NaN or an infinity may stand in it: orjson takes none."""
    if _LONG_NUMBER not in data.translate(_DIGITS_TO_ZERO):
        try:
            return orjson.loads(data), False
        except orjson.JSONDecodeError:
            pass
    return _loads_exact(data), may_hold_non_finite(data)


def _loads_exact(data: bytes) -> Any:
    try:
        return json.loads(data)
    except json.JSONDecodeError as error:
        raise InvalidJson(f"invalid JSON body: {error}") from None
    except UnicodeDecodeError:
        raise InvalidJson("invalid JSON body: not UTF-8") from None
    except RecursionError:
        raise InvalidJson(_TOO_DEEP) from None
    except ValueError as error:
        raise InvalidJson(f"invalid JSON body: {error}") from None


def exact(value: Any) -> bytes:
    """As `dumps`, with NaN and infinities as the literals that Python's `json` reads and writes."""
    data = dumps(value)
    return _dumps_exact(value) if b"null" in data and has_non_finite(value) else data


def has_non_finite(value: object) -> bool:
    """Whether a NaN or an infinity stands anywhere in a value. Arrays are taken to hold none."""
    match value:
        case float():
            return not math.isfinite(value)
        case dict():
            return any(map(has_non_finite, value.values()))
        case list() | tuple():
            return any(map(has_non_finite, value))
        case _:
            return False


def may_hold_non_finite(text: str | bytes) -> bool:
    """Whether a JSON text can hold a literal that is no number."""
    if isinstance(text, str):
        return "NaN" in text or "Infinity" in text
    return b"NaN" in text or b"Infinity" in text


def dumps(value: Any) -> bytes:
    """Compact UTF-8 JSON; values that orjson cannot write are written by `json`, lone surrogates escaped.
    NaN and infinities are null, as every JSON reader understands.

    Raises InvalidJson for nesting beyond DEEPEST.
    """
    try:
        return orjson.dumps(value, default=_fragment, option=orjson.OPT_SERIALIZE_NUMPY)
    except TypeError:
        return _dumps_exact(value)


def _dumps_exact(value: Any) -> bytes:
    if _deeper_than(value, DEEPEST):
        raise InvalidJson(_TOO_DEEP)
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"), default=_plain).encode()


def _deeper_than(value: Any, levels: int) -> bool:
    layer = _containers([value])
    for _ in range(levels):
        layer = _containers(
            inner for outer in layer for inner in (outer.values() if isinstance(outer, dict) else outer)
        )
        if not layer:
            return False
    return True


def _containers(values: Iterable[Any]) -> list[dict[str, Any] | list[Any]]:
    return [value for value in values if isinstance(value, dict | list)]


def _fragment(value: Any) -> orjson.Fragment:
    if isinstance(value, RawJson):
        return orjson.Fragment(value.text)
    raise TypeError


def _plain(value: Any) -> Any:
    return json.loads(value.text) if isinstance(value, RawJson) else value.tolist()


def text_of(value: Any) -> str:
    """`exact` as text, for columns that store JSON."""
    return exact(value).decode()


_MOST_SEARCHES = 16
"""Searches through a body, after which all of its messages are found in one pass."""


class MessageTexts:
    """The text of each message exactly as it stands in a request body. New messages stand at its end, so it
    is searched from there.
    """

    def __init__(self, body: bytes, messages: list[Any], name: str = "messages") -> None:
        """`name`: of the top-level array."""
        self._body = body
        self._messages = messages
        self._name = name
        self._next = 0
        """Where the message after the one last found would begin."""
        self._searches = 0
        """Messages that stood elsewhere than behind the one last found."""
        self._spans: list[str] | None = None

    def are_usual(self) -> bool:
        """Whether all messages are spelled as libraries write them, so that their values say all of them."""
        return any(usual in self._body for usual in _usual_spellings(self._messages))

    def text(self, index: int) -> str:
        """JSON text of one message: the compact spelling where the body has just that, else the client's
        own (escaped anew where it holds a lone surrogate, which no database takes as it stands).
        """
        message = self._messages[index]
        if self._spans is None:
            usual = self._found(message) if self._searches < _MOST_SEARCHES else None
            if usual is not None:
                return usual.decode()
            self._spans = elements(member(_decoded(self._body), self._name))
        own = self._spans[index]
        return own if encodes(own) else exact(message).decode()

    def _found(self, message: Any) -> bytes | None:
        """The spelling that stands in the body: behind the message last found, else wherever it does."""
        for usual in _usual_spellings(message):
            if self._body.startswith(usual, self._next):
                return self._passed(self._next, usual)
        self._searches += 1
        for usual in _usual_spellings(message):
            if (at := self._body.rfind(usual)) >= 0:
                return self._passed(at, usual)
        return None

    def _passed(self, at: int, usual: bytes) -> bytes:
        self._next = at + len(usual) + 1
        self._next += self._body.startswith(b" ", self._next)
        return usual


def own_member(body: bytes, name: str) -> str | None:
    """A member of a body as it is spelled; None where it has none, or one that no column takes."""
    text = member(_decoded(body), name)
    return text if text is not None and encodes(text) else None


def _usual_spellings(value: Any) -> Iterator[bytes]:
    """How a value is written compactly, and by `json`: by default, and with its characters as they are."""
    yield exact(value)
    for ascii_only in (True, False):
        try:
            yield json.dumps(value, ensure_ascii=ascii_only).encode()
        except (UnicodeEncodeError, RecursionError):
            return


def _decoded(body: bytes) -> str:
    """As `json.loads` decodes it: a mark at the front and wider encodings are accepted."""
    return body.decode(json.detect_encoding(body), "surrogatepass")


def encodes(text: str) -> bool:
    """Whether a text is UTF-8 when written, which one with a lone surrogate is not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def storable(text: str) -> str:
    """A text as a column can hold it: NUL and lone surrogates as JSON escapes."""
    if "\x00" in text:
        text = text.replace("\x00", "\\u0000")
    return text if encodes(text) else text.encode("utf-8", "backslashreplace").decode()
