"""JSON text laid out over lines for reading, with every value spelled exactly as it is stored.

Pure. Works on the text, not on parsed values: numbers, escapes, key order and repeated keys stay as they are.
"""

import re
from collections.abc import Iterator

_PARTS = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_INDENT = "  "
_OPENING, _CLOSING = "{[", "}]"


def laid_out(text: str) -> str:
    """The text with line breaks and indents between its values; text that is no JSON stays as it is."""
    parts = _PARTS.findall(text)
    if not _balanced(parts):
        return text
    return "".join(_lines(parts))


def _balanced(parts: list[str]) -> bool:
    """Whether brackets close what they open; enough to indent by, whatever else is wrong."""
    open_brackets: list[str] = []
    for part in parts:
        if part in _OPENING:
            open_brackets.append(_CLOSING[_OPENING.index(part)])
        elif part in _CLOSING and (not open_brackets or open_brackets.pop() != part):
            return False
    return bool(parts) and not open_brackets


def _lines(parts: list[str]) -> Iterator[str]:
    depth = 0
    for at, part in enumerate(parts):
        following = parts[at + 1] if at + 1 < len(parts) else ""
        before = parts[at - 1] if at else ""
        if part in _OPENING:
            depth += 1
            yield part if following and following in _CLOSING else part + _break(depth)
        elif part in _CLOSING:
            depth -= 1
            yield part if before in _OPENING and before else _break(depth) + part
        elif part == ",":
            yield part + _break(depth)
        else:
            yield ": " if part == ":" else part


def _break(depth: int) -> str:
    return "\n" + _INDENT * depth
