"""Anthropic Messages: the protocol as the views use it.

reading    a body as a ChatRequest
messages   Anthropic's messages as canonical ones
folding    system messages in the middle of a conversation
replying   a result as a message or as events
"""

from collections.abc import Iterator
from typing import Any

from sessions_app.errors import TitoError
from sessions_app.json_text import dumps
from sessions_app.protocols.anthropic import reading, replying
from sessions_app.protocols.base import Incoming
from sessions_app.protocols.errors import anthropic_error
from sessions_app.turns.values import ChatRequest, TurnResult


class AnthropicMessages:
    """See WireProtocol."""

    name = "messages"
    path = "/v1/messages"
    keep_alive = replying.event("ping", {})

    def read(self, incoming: Incoming) -> ChatRequest:
        """See WireProtocol."""
        return reading.read_request(incoming)

    def reply(self, result: TurnResult, request: ChatRequest) -> bytes:
        """See WireProtocol."""
        return replying.reply_of(result, request)

    def events(self, result: TurnResult, request: ChatRequest) -> Iterator[bytes]:
        """See WireProtocol."""
        return replying.stream_events(result, request)

    def error_body(self, error: TitoError) -> dict[str, Any]:
        """See WireProtocol."""
        return anthropic_error(error)

    def error_events(self, error: TitoError) -> Iterator[bytes]:
        """See WireProtocol."""
        yield b"event: error\ndata: " + dumps(anthropic_error(error)) + b"\n\n"

    def session_name(self, value: Any) -> str:
        """Bodies of this protocol name none; `metadata.user_id` is the user's."""
        return "default"


ANTHROPIC = AnthropicMessages()
