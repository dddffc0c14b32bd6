"""Items of the Responses API as canonical messages.

One reply of the model is several items there (reasoning, message, calls); together they are one assistant
message. What the model cannot be shown is refused.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sessions_app.errors import InvalidMessages, UnsupportedContent
from sessions_app.json_text import MessageTexts, text_of
from sessions_app.protocols.canonical import Canonical, Own
from sessions_app.protocols.responses.tools import joined_name

_ROLES = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
_TEXTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
_SEALED = "tito1."
"""How reasoning travels in `encrypted_content` for clients that keep nothing else of it."""


@dataclass(slots=True)
class _Reply:
    """An assistant message being collected."""

    reasoning: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    own: list[Own] = field(default_factory=list)

    def canonical(self) -> Canonical:
        """The message."""
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self.texts)}
        if any(self.reasoning):
            message["reasoning_content"] = "".join(self.reasoning)
        if self.calls:
            message["tool_calls"] = self.calls
        return Canonical(message, tuple(self.own))


def canonical_messages(given: Any, body: bytes) -> list[Canonical]:
    """The messages of `input`: a text, or a list of items."""
    if isinstance(given, str):
        own = Own(given, partial(text_of, given))
        return [Canonical({"role": "user", "content": given}, (own,))]
    if not isinstance(given, list):
        raise InvalidMessages("input must be text or a list of items")
    return list(_collected(given, MessageTexts(body, given, "input")))


def _collected(items: Iterable[Any], texts: MessageTexts) -> Iterator[Canonical]:
    reply: _Reply | None = None
    for index, item in enumerate(items):
        where, own = f"input[{index}]", Own(item, partial(texts.text, index))
        if not isinstance(item, dict):
            raise InvalidMessages(f"{where} must be an object")
        kind = item.get("type") or "message"
        if not _of_reply(item, kind):
            if reply is not None:
                yield reply.canonical()
            reply = None
            yield Canonical(_other(item, kind, where), (own,))
            continue
        if reply is not None and _begins_another(reply, kind):
            yield reply.canonical()
            reply = None
        reply = reply or _Reply()
        reply.own.append(own)
        _collect(reply, item, kind, where)
    if reply is not None:
        yield reply.canonical()


def _of_reply(item: dict[str, Any], kind: str) -> bool:
    return kind in ("reasoning", "function_call") or (kind == "message" and item.get("role") == "assistant")


def _begins_another(reply: _Reply, kind: str) -> bool:
    """The model thinks, speaks, calls; an item that goes back in this order belongs to the next reply."""
    if kind == "function_call":
        return False
    return bool(reply.calls) or (bool(reply.texts) and kind in ("message", "reasoning"))


def _collect(reply: _Reply, item: dict[str, Any], kind: str, where: str) -> None:
    if kind == "reasoning":
        reply.reasoning.append(_reasoning(item, where))
    elif kind == "function_call":
        reply.calls.append(_call(item, where))
    else:
        reply.texts.append(_joined(item.get("content"), f"{where}.content", ""))


def _other(item: dict[str, Any], kind: str, where: str) -> dict[str, Any]:
    if kind == "message":
        role = _ROLES.get(_text(item, "role", where))
        if role is None:
            raise InvalidMessages(f"{where}.role must be one of {', '.join(_ROLES)}")
        return {"role": role, "content": _joined(item.get("content"), f"{where}.content", "\n")}
    if kind == "function_call_output":
        output = _joined(item.get("output"), f"{where}.output", "\n")
        return {"role": "tool", "tool_call_id": _text(item, "call_id", where), "content": output}
    raise UnsupportedContent(f"{where}: {str(kind)[:40]!r} items cannot be shown to this model")


def _call(item: dict[str, Any], where: str) -> dict[str, Any]:
    name = joined_name(item.get("namespace"), _text(item, "name", where))
    function = {"name": name, "arguments": _text(item, "arguments", where)}
    return {"id": _text(item, "call_id", where), "type": "function", "function": function}


def _reasoning(item: dict[str, Any], where: str) -> str:
    """The text that was thought: from the content, else from the sealed copy, else the summary."""
    texts = _thoughts(item, "content", where)
    if any(texts):
        return "".join(texts)
    sealed = item.get("encrypted_content")
    if isinstance(sealed, str) and sealed.startswith(_SEALED):
        return unsealed(sealed)
    return "\n".join(_thoughts(item, "summary", where))


def _thoughts(item: dict[str, Any], name: str, where: str) -> list[str]:
    parts = item.get(name)
    if parts is None:
        return []
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise InvalidMessages(f"{where}.{name} must be a list of parts")
    return [_text(part, "text", f"{where}.{name}[{index}]") for index, part in enumerate(parts)]


def sealed(reasoning: str) -> str:
    """Reasoning in the field that clients keep and send back unread."""
    return _SEALED + b64encode(reasoning.encode("utf-8", "surrogatepass")).decode()


def unsealed(text: str) -> str:
    """The reasoning of `sealed`; what is no such text is none."""
    try:
        return b64decode(text.removeprefix(_SEALED), validate=True).decode("utf-8", "surrogatepass")
    except ValueError:
        return ""


def _joined(content: Any, where: str, separator: str) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise InvalidMessages(f"{where} must be text or a list of parts")
    texts = [_part(part, f"{where}[{index}]") for index, part in enumerate(content)]
    return separator.join(text for text in texts if text)


def _part(part: Any, where: str) -> str:
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        raise InvalidMessages(f"{where} must be an object with a type")
    name = _TEXTS.get(part["type"])
    if name is None:
        raise UnsupportedContent(f"{where}: {part['type'][:40]!r} parts cannot be shown to this model")
    return _text(part, name, where)


def _text(holder: dict[str, Any], name: str, where: str) -> str:
    value = holder.get(name)
    if not isinstance(value, str):
        raise InvalidMessages(f"{where}.{name} must be text")
    return value
