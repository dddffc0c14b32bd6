"""A stored message cut into what a person reads first, and all the rest. Pure.

Invariant: what is not shown as text, reasoning or calls is listed among `rest`, so nothing of a message is
hidden.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_READ = ("role", "content", "reasoning_content", "tool_calls", "tool_call_id", "name")


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call."""

    id: str | None
    name: str
    arguments: str
    """Their text as it stands in the message."""


@dataclass(frozen=True, slots=True)
class MessageView:
    """One message for reading."""

    texts: tuple[str, ...]
    """Its content; of content in parts, every text part."""
    others: tuple[str, ...]
    """Parts of the content that are no text, as JSON text."""
    reasoning: str | None
    calls: tuple[Call, ...]
    answers: str | None
    """Id of the call that a tool message answers."""
    name: str | None
    rest: tuple[tuple[str, str], ...]
    """Every other key with its value as JSON text."""
    readable: bool
    """False where the text is no JSON object; then only the raw text says anything."""


_UNREADABLE = MessageView((), (), None, (), None, None, (), readable=False)


def view_of(body: str) -> MessageView:
    """The message that a stored JSON text holds."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return _UNREADABLE
    if not isinstance(message, dict):
        return _UNREADABLE
    parts = _parts(message.get("content"))
    calls = message.get("tool_calls")
    return MessageView(
        texts=tuple(part for part in parts if isinstance(part, str)),
        others=tuple(_json(part) for part in parts if not isinstance(part, str)),
        reasoning=_text(message, "reasoning_content"),
        calls=tuple(map(_call, calls)) if isinstance(calls, list) else (),
        answers=_text(message, "tool_call_id"),
        name=_text(message, "name"),
        rest=tuple(_rest(message)),
        readable=True,
    )


def _parts(content: Any) -> list[Any]:
    if content is None:
        return []
    if not isinstance(content, list):
        return [content]
    return [_part(part) for part in content]


def _part(part: Any) -> Any:
    """A text part with nothing else in it as its text."""
    plain = isinstance(part, dict) and part.keys() == {"type", "text"} and isinstance(part["text"], str)
    return part["text"] if plain else part


def _text(message: Mapping[str, Any], name: str) -> str | None:
    value = message.get(name)
    return value if isinstance(value, str) else None


def _call(call: Any) -> Call:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return Call(None, "?", _json(call))
    arguments = function.get("arguments")
    return Call(
        id=_text(call, "id"),
        name=_text(function, "name") or "?",
        arguments=arguments if isinstance(arguments, str) else _json(arguments),
    )


def _rest(message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in message.items():
        shown = key in _READ and (isinstance(value, str) or key == "content")
        if shown or (key == "tool_calls" and isinstance(value, list)) or value is None:
            continue
        yield key, _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
