"""What tests of the SDKs have in common: tools, replies of the engine, and the number of branches."""

from typing import Any

import httpx

from tests.fakes.engine import Reply, Status

ARGUMENTS = '{"days": 1.0,   "city":"Z\\u00fcrich 1"}'
CALL = {"id": "call_A1", "type": "function", "function": {"name": "get_weather", "arguments": ARGUMENTS}}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "number"}}}
CHAT_TOOLS: list[Any] = [
    {"type": "function", "function": {"name": "get_weather", "description": "w", "parameters": SCHEMA}}
]
MESSAGES_TOOLS: list[Any] = [{"name": "get_weather", "description": "w", "input_schema": SCHEMA}]
RESPONSES_TOOLS: list[Any] = [
    {"type": "function", "name": "get_weather", "description": "w", "parameters": SCHEMA, "strict": False}
]
TOO_LONG = Status(400, {}, b'{"object":"error","message":"The input (99 tokens) is longer than the model\'s '
                           b'context length (64 tokens)."}')  # fmt: skip


def thinking_call() -> Reply:
    """Reasoning, text and a call."""
    message = {
        "role": "assistant",
        "content": "I will call\n\na tool. ",
        "reasoning_content": "Let me think.\n\nI need the tool.  ",
        "tool_calls": [CALL],
    }
    return Reply(ids=[104, 105, 106], message=message, finish="tool_calls")


def said(text: str) -> Reply:
    return Reply(ids=[104, 105], text=text)


def leaves(session: str) -> int:
    """How many branches a session has."""
    return len(httpx.get(session).json()["metadata"]["tree"]["leaves"])
