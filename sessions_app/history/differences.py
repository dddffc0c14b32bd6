"""Where a replayed history first departs from the stored one, in words and values an operator can read.

Invariant: the difference is one the matcher in force objects to. It is found by asking the matcher itself:
a field of the stored message is replaced by the replayed one, and the first replacement it refuses is the
difference. So this holds for custom matchers too, and fields a matcher ignores are never reported.
Explaining never raises.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sessions_app.errors import MatcherContract, MatcherRaised
from sessions_app.history.matchers.base import Message, MessageMatcher
from sessions_app.history.matchers.registry import BUILT_IN_MATCHERS
from sessions_app.history.matchers.values import same_types

VALUE_BYTES = 2048
"""A value is shown up to this many bytes of UTF-8, ellipsis included."""

ELLIPSIS = "…"

_LEAD_IN = 200
_MAX_PATH = 20
_FIELDS = ("role", "content", "reasoning_content", "tool_calls")
_SURROGATES = re.compile("[\ud800-\udfff]")


class _Missing:
    """The value of a field that is not there."""


_MISSING = _Missing()


@dataclass(frozen=True, slots=True)
class FirstDifference:
    """The first place where a replay is not what was stored."""

    index: int
    """Position in the request's messages."""
    path: str
    """Field within the message, such as `content` or `tool_calls[0].function.arguments`; `messages` when
    one side has no message here; empty when only the message as a whole was refused."""
    stored: str | None
    """JSON text of the stored value, cut at VALUE_BYTES; a long text starts shortly before the difference.
    None = the field or message is missing."""
    replayed: str | None
    """The same of the replayed value."""
    offset: int | None
    """For two strings: the character at which they part."""


def first_difference(
    stored: Sequence[Message], replayed: Sequence[Message], matcher: MessageMatcher
) -> FirstDifference | None:
    """The first difference between a stored path and a request; None when there is none."""
    for index, (one, other) in enumerate(zip(stored, replayed, strict=False)):
        if not accepts(matcher, one, other):
            return message_difference(index, one, other, matcher)
    if len(stored) == len(replayed):
        return None
    index = min(len(stored), len(replayed))
    sides = [dict(side[index]) if index < len(side) else _MISSING for side in (stored, replayed)]
    return _difference(index, "messages", *sides)


def message_difference(
    index: int, stored: Message, replayed: Message, matcher: MessageMatcher
) -> FirstDifference:
    """The first field in which the matcher refuses a pair of messages."""
    before, after = dict(stored), dict(replayed)
    path: list[str | int] = []
    one: Any = before
    other: Any = after
    while len(path) < _MAX_PATH and (name := _refused_part(before, path, one, other, matcher)) is not None:
        path.append(name)
        one, other = _part(one, name), _part(other, name)
    return _difference(index, _path_text(path), one, other)


def accepts(matcher: MessageMatcher, stored: Message, replayed: Message) -> bool:
    """The matcher's verdict on a made-up pair; an error of a custom matcher counts as a refusal."""
    try:
        return matcher.matches(stored, replayed)
    except (MatcherRaised, MatcherContract):
        return False


def refuses_part(matcher: MessageMatcher, message: Message, path: Sequence[str | int], part: Any) -> bool:
    """Whether the matcher refuses a message in which one part was replaced."""
    return not accepts(matcher, message, _replaced(dict(message), path, part))


def looser_matcher(stored: Message, replayed: Message, matcher_name: str) -> str | None:
    """The tightest built-in matcher, looser than the one in force, that accepts the pair; None when there
    is none.

    A custom matcher has no place in the order, so all built-ins are tried for it.
    """
    names = list(BUILT_IN_MATCHERS)
    looser = names[names.index(matcher_name) + 1 :] if matcher_name in names else names
    return next((name for name in looser if accepts(BUILT_IN_MATCHERS[name], stored, replayed)), None)


def _refused_part(
    message: dict[str, Any], path: list[str | int], stored: Any, replayed: Any, matcher: MessageMatcher
) -> str | int | None:
    """The first part of two values whose replacement in the stored message the matcher refuses."""
    for name in _parts(stored, replayed):
        part = _part(replayed, name)
        if _differ(_part(stored, name), part) and refuses_part(matcher, message, [*path, name], part):
            return name
    return None


def _parts(stored: Any, replayed: Any) -> Iterator[str | int]:
    """Names or positions of the parts of two values of one kind; none for anything else."""
    if isinstance(stored, dict) and isinstance(replayed, dict):
        names = dict.fromkeys([*_FIELDS, *stored, *replayed])
        yield from (name for name in names if name in stored or name in replayed)
    elif isinstance(stored, list) and isinstance(replayed, list):
        yield from range(max(len(stored), len(replayed)))


def _part(value: Any, name: str | int) -> Any:
    if isinstance(name, int):
        return value[name] if name < len(value) else _MISSING
    return value.get(name, _MISSING)


def _differ(stored: Any, replayed: Any) -> bool:
    return stored is not replayed and not same_types(stored, replayed)


def _replaced(value: Any, path: Sequence[str | int], part: Any) -> Any:
    """A copy of a value with one part replaced, added or taken out."""
    if not path:
        return part
    name, rest = path[0], path[1:]
    new = part if not rest else _replaced(value[name], rest, part)
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if key != name}
        return kept if new is _MISSING else {**value, name: new}
    assert isinstance(name, int)
    return value[:name] + ([] if new is _MISSING else [new]) + value[name + 1 :]


def _path_text(path: Sequence[str | int]) -> str:
    text = "".join(f"[{name}]" if isinstance(name, int) else f".{name}" for name in path)
    return text.removeprefix(".")


def _difference(index: int, path: str, stored: Any, replayed: Any) -> FirstDifference:
    offset = None
    if isinstance(stored, str) and isinstance(replayed, str):
        offset = common_length(stored, replayed)
    return FirstDifference(index, path, _shown(stored, offset), _shown(replayed, offset), offset)


def common_length(one: str, other: str) -> int:
    """Length of the longest common prefix."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def _shown(value: Any, offset: int | None) -> str | None:
    """JSON text of a value that any database stores, cut to VALUE_BYTES."""
    if value is _MISSING:
        return None
    text = _json(value)
    if offset is not None and len(text.encode()) > VALUE_BYTES:
        start = max(0, offset - _LEAD_IN)
        text = (ELLIPSIS if start else "") + _json(value[start : offset + VALUE_BYTES])
    return _cut(text)


def _json(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=repr)
    except RecursionError:
        return ELLIPSIS
    return _SURROGATES.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def _cut(text: str) -> str:
    data = text.encode()
    if len(data) <= VALUE_BYTES:
        return text
    return data[: VALUE_BYTES - len(ELLIPSIS.encode())].decode(errors="ignore") + ELLIPSIS
