"""A stored turn as the Responses API tells it afterwards: the response again, and the items it answered.

Items are told from the canonical messages, so turns of every protocol can be read this way.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from sessions_app.errors import InvalidArgument
from sessions_app.protocols.responses.identity import id_of_node
from sessions_app.protocols.responses.replying import items_of
from sessions_app.protocols.responses.tools import Names, told_tools
from sessions_app.store.read import Asked
from sessions_app.store.values import PathMessage

_MOST = 100
_TEXT_TYPES = ("text", "input_text", "output_text")


def asked_of(asked: Asked, path: Sequence[PathMessage]) -> dict[str, Any]:
    """What a turn's request said beside its input."""
    own = json.loads(asked.client_params or "{}") if asked.protocol == "responses" else {}
    own.pop("replayed", None)
    functions = json.loads(asked.tools or "null") or []
    tools = told_tools(functions, own.get("tools") or [{}] * len(functions))
    return {**own, "tools": tools, "instructions": _instructions(path)}


def input_items(session_id: UUID, path: Sequence[PathMessage], names: Names) -> list[dict[str, Any]]:
    """The items that a path's last reply answered, the earliest first. `names`: of namespaces' functions."""
    asked = path[:-1] if path and path[-1].generated else path
    instructed = 1 if _instructions(path) is not None else 0
    return [item for message in asked[instructed:] for item in _items(session_id, message, names)]


def item_page(items: Sequence[dict[str, Any]], query: Mapping[str, str]) -> dict[str, Any]:
    """A page of items, newest first unless `order=asc`. Raises InvalidArgument naming the parameter."""
    order, after = query.get("order", "desc"), query.get("after")
    if order not in ("asc", "desc"):
        raise InvalidArgument("order must be asc or desc")
    ordered = list(items) if order == "asc" else list(reversed(items))
    ids = [item["id"] for item in ordered]
    if after is not None and after not in ids:
        raise InvalidArgument("after must be the id of an item")
    start = 0 if after is None else ids.index(after) + 1
    page = ordered[start : start + _limit(query.get("limit", "20"))]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": start + len(page) < len(ordered),
    }


def _limit(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:9]) <= _MOST:
        raise InvalidArgument(f"limit must be a whole number from 1 to {_MOST}")
    return int(text)


def _instructions(path: Sequence[PathMessage]) -> str | None:
    """Of the head, where they came as such and not as an item."""
    if not path or path[0].sidecar is None:
        return None
    own = json.loads(path[0].sidecar)[0]
    given = own.get("instructions") if isinstance(own, dict) else None
    return given if isinstance(given, str) else None


def _items(session_id: UUID, stored: PathMessage, names: Names) -> Iterator[dict[str, Any]]:
    message = json.loads(stored.body)
    name = f"{id_of_node(session_id, stored.node_seq)}_{stored.position}"
    role = message.get("role")
    if role == "assistant":
        yield from items_of(message, name, "completed", names, with_sealed=False)
    elif role == "tool":
        yield {
            "id": name.replace("resp_", "fco_", 1),
            "type": "function_call_output",
            "call_id": message.get("tool_call_id") or "",
            "output": "\n".join(_texts(message.get("content"))),
            "status": "completed",
        }
    else:
        content = [{"type": "input_text", "text": text} for text in _texts(message.get("content"))]
        item_id = name.replace("resp_", "msg_", 1)
        yield {"id": item_id, "type": "message", "role": role, "status": "completed", "content": content}


def _texts(content: Any) -> list[str]:
    if not isinstance(content, list):
        return [content] if isinstance(content, str) else []
    parts = [part for part in content if isinstance(part, dict) and part.get("type") in _TEXT_TYPES]
    return [part["text"] for part in parts if isinstance(part.get("text"), str)]
