"""A turn's result as an Anthropic message, in one piece or as its events.

Block order: thinking, text, calls. A stream has the event sequence of the real service, each block whole in
one delta; pings only while it is waited for.
"""

from base64 import b64encode
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

from sessions_app.json_text import RawJson, dumps, text_of
from sessions_app.protocols.calls import RAW_ARGUMENTS, anthropic_id, arguments_object
from sessions_app.turns.values import ChatRequest, TurnResult

_STOP_REASONS = {"length": "max_tokens", "content_filter": "refusal"}
_CHAT_ID = "chatcmpl-"


def message_of(result: TurnResult, request: ChatRequest) -> dict[str, Any]:
    """The whole message."""
    reason, sequence = _stop(result, request)
    return {
        "id": "msg_" + str(result.reply.get("id") or "").removeprefix(_CHAT_ID),
        "type": "message",
        "role": "assistant",
        "model": str(request.body.get("model") or result.reply.get("model") or ""),
        "content": content_blocks(result.message),
        "stop_reason": reason,
        "stop_sequence": sequence,
        "usage": {
            "input_tokens": _count(result.reply, "prompt_tokens"),
            "output_tokens": _count(result.reply, "completion_tokens"),
        },
    }


def content_blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A reply's blocks; an empty one has one empty text."""
    blocks: list[dict[str, Any]] = []
    reasoning, content = message.get("reasoning_content"), _text(message.get("content"))
    if reasoning:
        blocks.append({"type": "thinking", "thinking": reasoning, "signature": _signature(reasoning)})
    if content:
        blocks.append({"type": "text", "text": content})
    blocks += [_tool_use(call) for call in _calls(message)]
    return blocks or [{"type": "text", "text": ""}]


def reply_of(result: TurnResult, request: ChatRequest) -> bytes:
    """The whole message as JSON, arguments with every digit that was sampled."""
    message, spellings = message_of(result, request), iter(_spellings(result.message))
    message["content"] = [
        {**block, "input": RawJson(next(spellings))} if block["type"] == "tool_use" else block
        for block in message["content"]
    ]
    return dumps(message)


def stream_events(result: TurnResult, request: ChatRequest) -> Iterator[bytes]:
    """The events of a whole message."""
    message = message_of(result, request)
    usage, blocks = message["usage"], message["content"]
    start = {**message, "content": [], "stop_reason": None, "stop_sequence": None}
    start["usage"] = {**usage, "output_tokens": 0}
    yield event("message_start", {"message": start})
    spellings = iter(_spellings(result.message))
    for index, block in enumerate(blocks):
        spelling = next(spellings) if block["type"] == "tool_use" else None
        begun, deltas = _in_parts(block, spelling)
        yield event("content_block_start", {"index": index, "content_block": begun})
        for delta in deltas:
            yield event("content_block_delta", {"index": index, "delta": delta})
        yield event("content_block_stop", {"index": index})
    stop = {"stop_reason": message["stop_reason"], "stop_sequence": message["stop_sequence"]}
    yield event("message_delta", {"delta": stop, "usage": usage})
    yield event("message_stop", {})


def event(kind: str, fields: Mapping[str, Any]) -> bytes:
    """One server-sent event."""
    return b"event: " + kind.encode() + b"\ndata: " + dumps({"type": kind, **fields}) + b"\n\n"


def _in_parts(block: dict[str, Any], spelling: str | None) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A block as it begins, and its deltas."""
    match block["type"]:
        case "thinking":
            begun = {"type": "thinking", "thinking": "", "signature": ""}
            thought = {"type": "thinking_delta", "thinking": block["thinking"]}
            return begun, [thought, {"type": "signature_delta", "signature": block["signature"]}]
        case "tool_use":
            return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": spelling}]
        case _:
            return {"type": "text", "text": ""}, [{"type": "text_delta", "text": block["text"]}]


def _spellings(message: Mapping[str, Any]) -> Iterator[str]:
    """Arguments of each call: the engine's own text where that is an object, else what it travels in."""
    for call in _calls(message):
        arguments = (call.get("function") or {}).get("arguments")
        value = arguments_object(arguments)
        if isinstance(arguments, str) and arguments.strip() and RAW_ARGUMENTS not in value:
            yield arguments
        else:
            yield text_of(value)


def _calls(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [call for call in message.get("tool_calls") or [] if isinstance(call, Mapping)]


def _tool_use(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function") or {}
    return {
        "type": "tool_use",
        "id": anthropic_id(call.get("id")),
        "name": function.get("name") or "",
        "input": arguments_object(function.get("arguments")),
    }


def _stop(result: TurnResult, request: ChatRequest) -> tuple[str, str | None]:
    if _calls(result.message):
        return "tool_use", None
    matched = _matched_stop(result)
    if isinstance(matched, str) and matched in (request.body.get("stop") or ()):
        return "stop_sequence", matched
    return _STOP_REASONS.get(result.generation.finish_reason, "end_turn"), None


def _matched_stop(result: TurnResult) -> Any:
    """The stop text that the engine says it met, wherever it says so."""
    choice = (result.reply.get("choices") or [{}])[0]
    matched = result.generation.extras.get("matched_stop")
    return matched if matched is not None else choice.get("matched_stop", choice.get("stop_reason"))


def _signature(reasoning: str) -> str:
    """Clients keep it and send it back; what is verified of a replay is its text."""
    return b64encode(blake2b(reasoning.encode("utf-8", "surrogatepass"), digest_size=24).digest()).decode()


def _count(reply: Mapping[str, Any], name: str) -> int:
    usage = reply.get("usage")
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if isinstance(value, int) else 0


def _text(content: Any) -> str:
    """The text of a reply's content; engines may answer in parts."""
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content if isinstance(part, dict))
    return content or ""
