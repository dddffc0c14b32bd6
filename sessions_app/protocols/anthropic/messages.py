"""Anthropic's messages as canonical ones.

A user's text blocks stay one message, joined by line breaks, so that what a harness adds to a message stays
in it; `apart` makes each block a message of its own, as the reference gateway does. Tool results become tool
messages. What the model cannot be shown is refused, never turned into text.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from sessions_app.errors import InvalidMessages, UnsupportedContent
from sessions_app.json_spans import elements, member
from sessions_app.json_text import MessageTexts, own_member, text_of
from sessions_app.protocols.anthropic.folding import Spoken, folded, text_block
from sessions_app.protocols.calls import arguments_text, canonical_id
from sessions_app.protocols.canonical import Canonical, Own

_ROLES = ("user", "assistant", "system")
_NOT_SHOWN = ("redacted_thinking",)
"""Blocks that no client can read and no model be shown: they stand in the sidecar alone."""


def canonical_messages(value: Mapping[str, Any], body: bytes, *, apart: bool) -> list[Canonical]:
    """The whole conversation of a request."""
    spoken = list(_spoken(value.get("messages"), body))
    system = value.get("system")
    head = [] if not system else [_system(system, body)]
    conversation = folded(spoken, across_replies=apart)
    return [*head, *(canonical for message in conversation for canonical in _canonical(message, apart))]


def _spoken(messages: Any, body: bytes) -> Iterator[Spoken]:
    if not isinstance(messages, list):
        raise InvalidMessages("messages must be a list")
    texts = MessageTexts(body, messages)
    spelled = any(_calls_something(message) for message in messages) and not texts.are_usual()
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        if not isinstance(message, dict):
            raise InvalidMessages(f"{where} must be an object")
        role = message.get("role")
        if role not in _ROLES:
            raise InvalidMessages(f"{where}.role must be one of {', '.join(_ROLES)}")
        blocks = tuple(_blocks(message.get("content"), f"{where}.content"))
        if role == "system":
            _texts_joined(blocks, f"{where}.content")  # folded as text: what is none is refused here
        own = Own(message, partial(texts.text, index))
        inputs = _inputs(texts, index, message) if spelled else ()
        yield Spoken(role, blocks, f"{where}.content", (own,), inputs)


def _calls_something(message: Any) -> bool:
    content = message.get("content") if isinstance(message, dict) else None
    return isinstance(content, list) and any(
        isinstance(block, dict) and block.get("type") == "tool_use" for block in content
    )


def _inputs(texts: MessageTexts, index: int, message: dict[str, Any]) -> Sequence[str | None]:
    """The `input` of each block in the client's own text; none where its values say all of it.

    Asked for every message in order: then the body is searched once.
    """
    text = texts.text(index)
    if not _calls_something(message) or text == text_of(message):
        return ()
    return [member(block, "input") for block in elements(member(text, "content"))]


def _blocks(content: Any, where: str) -> Iterator[dict[str, Any]]:
    if isinstance(content, str):
        yield text_block(content)
        return
    if not isinstance(content, list):
        raise InvalidMessages(f"{where} must be text or a list of blocks")
    for index, block in enumerate(content):
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            raise InvalidMessages(f"{where}[{index}] must be an object with a type")
        yield block


def _system(system: Any, body: bytes) -> Canonical:
    text = _texts_joined(tuple(_blocks(system, "system")), "system")
    own = {"system": system}
    return Canonical({"role": "system", "content": text}, (Own(own, partial(_system_text, own, body)),))


def _system_text(own: dict[str, Any], body: bytes) -> str:
    usual = text_of(own)
    if usual[1:-1].encode() in body:
        return usual
    spelled = own_member(body, "system")
    return usual if spelled is None else f'{{"system":{spelled}}}'


def _canonical(message: Spoken, apart: bool) -> list[Canonical]:
    if message.role == "assistant":
        return [Canonical(_assistant(message), message.own)]
    if message.role == "system":
        text = _texts_joined(message.blocks, message.where)
        return [Canonical({"role": "system", "content": text}, message.own)]
    pieces = list(_user(message, apart)) or [{"role": "user", "content": ""}]
    return [Canonical(piece, () if index else message.own) for index, piece in enumerate(pieces)]


def _user(message: Spoken, apart: bool) -> Iterator[dict[str, Any]]:
    """Tool results as tool messages, texts between them as user messages, in order."""
    run: list[str] = []
    for index, block in enumerate(message.blocks):
        where = f"{message.where}[{index}]"
        if block["type"] == "tool_result":
            if run:
                yield _said(run)
            run = []
            yield _tool_result(block, where)
        elif apart:
            yield _said([_text(block, where)])
        else:
            run.append(_text(block, where))
    if run:
        yield _said(run)


def _said(texts: list[str]) -> dict[str, Any]:
    return {"role": "user", "content": "\n".join(text for text in texts if text)}


def _tool_result(block: dict[str, Any], where: str) -> dict[str, Any]:
    call_id = block.get("tool_use_id")
    if not isinstance(call_id, str):
        raise InvalidMessages(f"{where}.tool_use_id must be text")
    content = block.get("content")
    blocks = tuple(_blocks("" if content is None else content, f"{where}.content"))
    text = _texts_joined(blocks, f"{where}.content")
    return {"role": "tool", "tool_call_id": canonical_id(call_id), "content": text}


def _assistant(message: Spoken) -> dict[str, Any]:
    texts, thoughts, calls = [], [], []
    for index, block in enumerate(message.blocks):
        where = f"{message.where}[{index}]"
        if block["type"] == "thinking":
            thoughts.append(_field(block, "thinking", where))
        elif block["type"] == "tool_use":
            spelled = message.inputs[index] if message.inputs else None
            calls.append(_call(block, where, spelled))
        elif block["type"] not in _NOT_SHOWN:
            texts.append(_text(block, where))
    canonical: dict[str, Any] = {"role": "assistant", "content": "".join(texts)}
    if any(thoughts):
        canonical["reasoning_content"] = "".join(thoughts)
    if calls:
        canonical["tool_calls"] = calls
    return canonical


def _call(block: dict[str, Any], where: str, spelled: str | None) -> dict[str, Any]:
    given = block.get("input")
    if given is not None and not isinstance(given, dict):
        raise InvalidMessages(f"{where}.input must be an object")
    arguments = arguments_text(given, spelled) if given else "{}"
    return {
        "id": canonical_id(_field(block, "id", where)),
        "type": "function",
        "function": {"name": _field(block, "name", where), "arguments": arguments},
    }


def _texts_joined(blocks: tuple[dict[str, Any], ...], where: str) -> str:
    texts = [_text(block, f"{where}[{index}]") for index, block in enumerate(blocks)]
    return "\n".join(text for text in texts if text)


def _text(block: dict[str, Any], where: str) -> str:
    if block["type"] != "text":
        raise UnsupportedContent(f"{where}: {block['type'][:40]!r} blocks cannot be shown to this model")
    return _field(block, "text", where)


def _field(block: dict[str, Any], name: str, where: str) -> str:
    value = block.get(name)
    if not isinstance(value, str):
        raise InvalidMessages(f"{where}.{name} must be text")
    return value
