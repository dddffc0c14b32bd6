"""A recorded call as a chat conversation in the form that fine-tuning files use."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainer_export.traces.reference import ValidationError

FUNCTION = "function"
"""Type of a tool call that recorded none."""
_PLAIN_ROLES = frozenset({"developer", "system", "user", "assistant"})


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """The parts of one span."""

    prompt: Sequence[Any]
    completion: Sequence[Any]
    request: Mapping[str, Any]
    tool_calls: Sequence[Mapping[str, Any]]
    """From the span's direct children; they belong to every completion."""


def conversation(call: RecordedCall) -> dict[str, Any]:
    """`{"messages", "tools"}`; tools is None when the request names no functions."""
    messages = [_sent(message) for message in call.prompt]
    messages += [_received(item, call) for item in call.completion if item.get("role") == "assistant"]
    tools = [_tool(item) for item in call.request["functions"]] if "functions" in call.request else None
    return {"messages": messages, "tools": tools}


def _sent(message: Any) -> dict[str, Any]:
    """A message of the prompt; recorded tool calls of an assistant take the place of its content."""
    role = message["role"]
    if role == "assistant" and "tool_calls" in message:
        calls = [
            _tool_call(call["id"], call.get("type", FUNCTION), call["name"], call["arguments"])
            for call in message["tool_calls"]
        ]
        return {"role": "assistant", "content": None, "tool_calls": calls}
    content = message.get("content", "")
    if not isinstance(content, str | list | dict):
        raise ValidationError(
            f"message.content: Input should be a valid string, got {type(content).__name__}"
        )
    return {"role": role, "content": content} | _answered_call(role, message)


def _answered_call(role: Any, message: Mapping[str, Any]) -> dict[str, Any]:
    """The id a tool message answers; other roles have none."""
    if role == "tool":
        call_id = message.get("tool_call_id")
        if not isinstance(call_id, str):
            raise ValidationError("message.tool_call_id: Input should be a valid string")
        return {"tool_call_id": call_id}
    if role not in _PLAIN_ROLES:
        raise ValidationError(f"message.role: Input should be a known role, got {role!r}")
    return {}


def _received(message: Mapping[str, Any], call: RecordedCall) -> dict[str, Any]:
    answer: dict[str, Any] = {"role": "assistant", "content": message.get("content")}
    if call.tool_calls:
        answer["tool_calls"] = [
            _tool_call(
                tool["call"]["id"], tool["call"].get("type", FUNCTION), tool["name"], tool["parameters"]
            )
            for tool in call.tool_calls
        ]
    return answer


def _tool_call(call_id: Any, kind: Any, name: Any, arguments: Any) -> dict[str, Any]:
    return {"id": call_id, "type": kind, "function": {"name": name, "arguments": arguments}}


def _tool(function: Any) -> dict[str, Any]:
    definition = {
        "name": function["name"],
        "description": function.get("description", ""),
        "parameters": _parsed(function["parameters"]),
    }
    return {"type": FUNCTION, "function": definition}


def _parsed(parameters: Any) -> Any:
    """A JSON schema, recorded as text."""
    return json.loads(parameters) if isinstance(parameters, str) else parameters
