"""Parts of a JSON text as they are spelled: members of objects, elements of arrays, and one text with its
blanks brought to one form.

Takes texts that have been parsed already. Invariant: no number, no key and no order is touched.
"""

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]

_DECODER = json.JSONDecoder()
_READABLE = json.JSONEncoder(ensure_ascii=False)
_BLANKS = " \t\n\r"
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_SPACED = {",": ", ", ":": ": "}


def member(text: str, name: str) -> str | None:
    """The text of an object's member; the last of equal keys, as in the parsed value. None: it has none."""
    found: str | None = None
    at = _skip_blanks(text, _skip_blanks(text, 0) + 1)
    while text[at] != "}":
        key, at = scanstring(text, at + 1, False)
        at = _skip_blanks(text, _skip_blanks(text, at) + 1)
        end = _DECODER.raw_decode(text, at)[1]
        if key == name:
            found = text[at:end]
        at = _after_comma(text, end)
    return found


def elements(text: str | None) -> list[str]:
    """The texts of an array's elements; none where it is no array."""
    if text is None or not text.startswith("["):
        return []
    found = []
    at = _skip_blanks(text, 1)
    while text[at] != "]":
        end = _DECODER.raw_decode(text, at)[1]
        found.append(text[at:end])
        at = _after_comma(text, end)
    return found


def respaced(text: str) -> str:
    """A JSON text with the blanks that Python's `json` sets, characters as they are."""
    return "".join(_spelled(token) for token in _TOKENS.findall(text))


def readable(text: str) -> str:
    """A string as JSON, characters as they are; escaped where it holds a lone surrogate."""
    spelled = _READABLE.encode(text)
    try:
        spelled.encode()
    except UnicodeEncodeError:
        return json.dumps(text)
    return spelled


def _spelled(token: str) -> str:
    if token[0] != '"':
        return _SPACED.get(token, token)
    if "\\" not in token and token.isascii():
        return token
    return readable(scanstring(token, 1, False)[0])


def _after_comma(text: str, at: int) -> int:
    at = _skip_blanks(text, at)
    return _skip_blanks(text, at + 1) if text[at] == "," else at


def _skip_blanks(text: str, at: int) -> int:
    while text[at] in _BLANKS:
        at += 1
    return at
