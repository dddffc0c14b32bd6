"""Calls that a harness replays as text: `Calling tools:` and a Python list behind what the model said.

Such a message is brought back to the calls it tells; one that has calls only quotes others. Calls of the
harness's own interpreter are no calls of the model: their code stands in its text.
"""

import ast
import json
from typing import Any

from sessions_app.history.matchers.base import Message

_MARK = "Calling tools:\n["
_INTERPRETER = "python_interpreter"
_LONGEST = 2**18
"""Characters of a list that is read: a longer one takes too much memory, and stays text."""


def calls_from_text(message: Message) -> Message:
    """The message with its calls as calls, and without blanks around its text."""
    content = message.get("content")
    if message.get("role") != "assistant" or not content:
        return message
    text = content if isinstance(content, str) else _only_text(content)
    if text is None:
        return message
    said, mark, told = (text, "", "") if message.get("tool_calls") else text.partition(_MARK)
    calls = _calls(f"[{told}") if mark else []
    if calls is None:
        return message
    kept = [call for call in calls if call["function"].get("name") != _INTERPRETER]
    form = {**message, "content": said.strip(), **({"tool_calls": kept} if kept else {})}
    return message if form == message else form


def _only_text(content: Any) -> str | None:
    """The text of a content that is one part of text."""
    part = content[0] if isinstance(content, list) and len(content) == 1 else None
    text = part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
    return text if isinstance(text, str) else None


def _calls(told: str) -> list[dict[str, Any]] | None:
    """The calls of a Python list; None where it is none of calls."""
    if len(told) > _LONGEST:
        return None
    try:
        calls = ast.literal_eval(told)
        return [{**call, "function": _with_text(call["function"])} for call in calls]
    except (ValueError, SyntaxError, TypeError, KeyError, RecursionError, MemoryError):
        return None


def _with_text(function: dict[str, Any]) -> dict[str, Any]:
    arguments = function["arguments"]
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {**function, "arguments": text}
