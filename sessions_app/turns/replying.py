"""The chat-shaped reply of a generation: the engine's own, or one built from parsed ids."""

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sessions_app.backends.base import Generation
from sessions_app.backends.reply import client_reply
from sessions_app.rendering.protocol import Renderer


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A reply as it is stored and as chat clients see it."""

    generation: Generation
    """With a response id, and `tool_calls` as finish reason where the parsed message has calls."""
    message: dict[str, Any]
    body: Mapping[str, Any]
    """Replay payloads removed."""
    ill_formed: bool


def chat_reply(
    generation: Generation, renderer: Renderer, tools: list[Any] | None, model: str, prompt_tokens: int
) -> ChatReply:
    """The reply of a generation; parses the ids where the engine did not."""
    if generation.reply is not None and generation.message is not None:
        return ChatReply(generation, generation.message, client_reply(generation.reply), False)
    parsed = renderer.parse(generation.ids, tools)
    named = _named(generation, parsed.message)
    body = _built(named, parsed.message, model, prompt_tokens)
    return ChatReply(named, parsed.message, body, parsed.ill_formed)


def _named(generation: Generation, message: Mapping[str, Any]) -> Generation:
    """The generation with the id and the finish reason that its reply tells."""
    calls = generation.finish_reason == "stop" and message.get("tool_calls")
    return replace(
        generation,
        response_id=generation.response_id or f"chatcmpl-{uuid.uuid4().hex}",
        finish_reason="tool_calls" if calls else generation.finish_reason,
    )


def _built(
    generation: Generation, message: Mapping[str, Any], model: str, prompt_tokens: int
) -> dict[str, Any]:
    """An empty text is told as null, as the reference gateway does; it is stored as the empty text it is."""
    completion_tokens = len(generation.ids)
    told = {**message, "content": message["content"] or None}
    return {
        "id": generation.response_id,
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [{"index": 0, "message": told, "finish_reason": generation.finish_reason or None}],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        },
    }
