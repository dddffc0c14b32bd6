"""Messages and tools in the form that templates take: pure functions, nothing is changed in place.

Two dialects. The *served* one of inference engines (families): arguments as values, tools dumped with
defaults. The *plain* one (any template): tools as they were sent, arguments as objects or text, whichever
the template wants.
"""

import json
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from sessions_app.errors import InvalidMessages, InvalidTools, UnsupportedContent
from sessions_app.rendering.protocol import Message, Tool

RAW_ARGUMENTS = "_raw_arguments"
"""Key under which arguments that are no JSON are given to a template that only takes objects."""


class ArgumentsForm(Enum):
    """How a template takes the arguments of a tool call."""

    VALUE = "value"
    """Parsed; text that does not parse stays text."""
    TEXT = "text"
    """JSON text."""
    OBJECT = "object"
    """Parsed; text that does not parse is wrapped as {RAW_ARGUMENTS: text}."""


class ContentForm(Enum):
    """How a template takes a content that is a list of parts."""

    AS_SENT = "as_sent"
    """Whatever it is; the template decides what becomes of it."""
    TEXT_PARTS = "text_parts"
    """As a list; parts that are no text are refused."""
    JOINED = "joined"
    """As one text, the parts on lines of their own; parts that are no text are refused."""
    ALWAYS_PARTS = "always_parts"
    """As a list even where it is one text; parts that are no text are refused."""


def prepare_messages(
    messages: Sequence[Message], arguments: ArgumentsForm, content: ContentForm
) -> list[Mapping[str, Any]]:
    """What a template iterates over."""
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        raise InvalidMessages("messages must be a list")
    return [_prepared(message, index, arguments, content) for index, message in enumerate(messages)]


def _prepared(
    message: Message, index: int, arguments: ArgumentsForm, content: ContentForm
) -> Mapping[str, Any]:
    if not isinstance(message, Mapping):
        raise InvalidMessages(f"messages[{index}] must be an object")
    prepared = dict(message)
    if content is ContentForm.ALWAYS_PARTS and isinstance(message.get("content"), str):
        prepared["content"] = [{"type": "text", "text": message["content"]}]
    if content is not ContentForm.AS_SENT and isinstance(message.get("content"), list):
        texts = _part_texts(message["content"], index)
        if content is ContentForm.JOINED:
            prepared["content"] = "\n".join(text for text in texts if text)
    assistant = message.get("role") == "assistant"
    if message.get("content") is None and (assistant or content is not ContentForm.AS_SENT):
        prepared["content"] = [] if content is ContentForm.ALWAYS_PARTS else ""
    if assistant and isinstance(message.get("tool_calls"), list):
        prepared["tool_calls"] = [_prepared_call(call, arguments) for call in message["tool_calls"]]
    return prepared


def _part_texts(parts: list[Any], index: int) -> list[str]:
    texts = []
    for part in parts:
        text = part if isinstance(part, str) else part.get("text") if isinstance(part, Mapping) else None
        if not isinstance(text, str):
            raise UnsupportedContent(f"messages[{index}] has a content part that is no text")
        texts.append(text)
    return texts


def _prepared_call(call: Any, form: ArgumentsForm) -> Any:
    if not isinstance(call, Mapping) or not isinstance(call.get("function"), Mapping):
        return call
    function = call["function"]
    if "arguments" not in function:
        return call
    return {**call, "function": {**function, "arguments": arguments_as(function["arguments"], form)}}


def arguments_as(arguments: Any, form: ArgumentsForm) -> Any:
    """Tool-call arguments in the form a template takes; malformed text is data and stays readable."""
    if form is ArgumentsForm.TEXT:
        return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    if not isinstance(arguments, str):
        return arguments
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return {RAW_ARGUMENTS: arguments} if form is ArgumentsForm.OBJECT else arguments
    return value if form is ArgumentsForm.VALUE or isinstance(value, Mapping) else {RAW_ARGUMENTS: arguments}


def wrapped_tools(tools: Sequence[Tool] | None) -> list[dict[str, Any]] | None:
    """Tools as sent, bare functions wrapped; None for none."""
    if not tools:
        return None
    if not isinstance(tools, Sequence) or isinstance(tools, str):
        raise InvalidTools("tools must be a list of objects")
    return [_wrapped(tool, index) for index, tool in enumerate(tools)]


def _wrapped(tool: Tool, index: int) -> dict[str, Any]:
    if not isinstance(tool, Mapping):
        raise InvalidTools(f"tools[{index}] must be an object")
    wrapped = dict(tool) if "function" in tool else {"type": "function", "function": tool}
    if not isinstance(wrapped["function"], Mapping):
        raise InvalidTools(f"tools[{index}].function must be an object")
    if not isinstance(wrapped["function"].get("name"), str):
        raise InvalidTools(f"tools[{index}].function.name must be a string")
    return wrapped


def served_tools(tools: Sequence[Tool] | None) -> list[dict[str, Any]] | None:
    """Tools as engines dump them before rendering: fixed key order, defaults filled in, other keys
    dropped."""
    wrapped = wrapped_tools(tools)
    return None if wrapped is None else [_served(tool, index) for index, tool in enumerate(wrapped)]


def _served(tool: Mapping[str, Any], index: int) -> dict[str, Any]:
    function = tool["function"]
    kind, description, strict = (
        tool.get("type", "function"),
        function.get("description"),
        function.get("strict", False),
    )
    if not isinstance(kind, str):
        raise InvalidTools(f"tools[{index}].type must be a string")
    if description is not None and not isinstance(description, str):
        raise InvalidTools(f"tools[{index}].function.description must be a string")
    if not isinstance(strict, bool):
        raise InvalidTools(f"tools[{index}].function.strict must be a boolean")
    dumped = {
        "description": description,
        "name": function["name"],
        "parameters": function.get("parameters"),
        "strict": strict,
    }
    return {"type": kind, "function": dumped}


def canonical(value: Any) -> Any:
    """The same value with the keys of every object in order; lists keep theirs."""
    if isinstance(value, Mapping):
        return {key: canonical(value[key]) for key in sorted(value)}
    return [canonical(item) for item in value] if isinstance(value, list) else value
