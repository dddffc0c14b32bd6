"""Recorded messages as chat messages, whichever dialect wrote them.

Flat attributes of the older forms, parts of the newer one, OpenInference's wrappers and the API's own objects
all end as `role`, `content`, `tool_calls` and `tool_call_id`. What cannot be told is left out, never guessed.
"""

import json
from collections.abc import Iterator
from typing import Any

from trainer_export.traces.dialects.json_text import loaded, loaded_list

Chat = dict[str, Any]


def chat_messages(recorded: Any, role: str) -> list[Chat]:
    """Messages in order; one without a role of its own has the given one."""
    if isinstance(recorded, dict):
        recorded = [recorded[key] for key in sorted(filter(str.isdecimal, recorded), key=int)] or [recorded]
    found = [_unwrapped(item) for item in recorded] if isinstance(recorded, list) else []
    return [made for item in found if item for made in _messages(item, role)]


def _unwrapped(item: Any) -> Chat | None:
    """Choices of a reply and OpenInference's entries hold the message one level down."""
    if not isinstance(item, dict):
        return None
    inner = item.get("message")
    return inner if isinstance(inner, dict) else item


def _messages(item: Chat, role: str) -> Iterator[Chat]:
    """One message, or several where one entry answers several calls."""
    parts = item.get("parts")
    named = item.get("role")
    role = named if isinstance(named, str) else role
    if isinstance(parts, list):
        yield from _of_parts([part for part in parts if isinstance(part, dict)], role)
        return
    made: Chat = {"role": role, "content": _content(item)}
    calls = [call for one in loaded_list(item.get("tool_calls")) if (call := _call(one))]
    if calls:
        made["tool_calls"] = calls
    if isinstance(item.get("tool_call_id"), str):
        made["tool_call_id"] = item["tool_call_id"]
    yield made


def _of_parts(parts: list[Chat], role: str) -> Iterator[Chat]:
    answers = [part for part in parts if part.get("type") == "tool_call_response"]
    for part in answers:
        result = part.get("response", part.get("result"))
        yield {"role": "tool", "content": _text(result), "tool_call_id": part.get("id")}
    content = [made for part in parts if (made := _content_part(part))]
    calls = [call for part in parts if part.get("type") == "tool_call" and (call := _call(part))]
    if content or calls or not answers:
        yield {"role": role, "content": _joined(content), **({"tool_calls": calls} if calls else {})}


def _content(item: Chat) -> Any:
    """Text, or a list of parts; multimodal content may be recorded as JSON text."""
    contents = item.get("contents")
    if isinstance(contents, list):
        found = [one.get("message_content", one) for one in contents if isinstance(one, dict)]
        return _joined([made for one in found if isinstance(one, dict) and (made := _content_part(one))])
    content = item.get("content")
    nested = loaded(content) if isinstance(content, str) else None
    if isinstance(nested, list) and nested and all(_is_part(part) for part in nested):
        return nested
    return content


def _is_part(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("type"), str)


def _content_part(part: Chat) -> Chat | None:
    """As the API spells it: text or an image's URL."""
    kind = part.get("type")
    if kind == "text":
        return {"type": "text", "text": _text(part.get("text", part.get("content")))}
    url = part.get("uri")
    if kind == "image" and isinstance(part.get("image"), dict):
        inner = part["image"].get("image", part["image"])
        url = inner.get("url") if isinstance(inner, dict) else None
    if kind == "image_url":
        return part
    return {"type": "image_url", "image_url": {"url": url}} if isinstance(url, str) else None


def _joined(parts: list[Chat]) -> Any:
    """Plain text stays text; None where there is nothing."""
    if not parts:
        return None
    if all(part["type"] == "text" for part in parts):
        return "".join(part["text"] for part in parts)
    return parts


def _call(recorded: Any) -> Chat | None:
    """A tool call; arguments are text, as the API has them."""
    if not isinstance(recorded, dict):
        return None
    inner = recorded.get("tool_call")
    call = inner if isinstance(inner, dict) else recorded
    nested = call.get("function")
    function = nested if isinstance(nested, dict) else call
    if not isinstance(function.get("name"), str):
        return None
    named = {"name": function["name"], "arguments": _text(function.get("arguments", {}))}
    return {"id": call.get("id"), "type": "function", "function": named}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
