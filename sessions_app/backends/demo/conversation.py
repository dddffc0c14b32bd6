"""What the demo engine reads in a prompt: turns and offered tools, found in the decoded text as a model would
see it.

Only ChatML-like text is understood (`<|im_start|>role … <|im_end|>`); of anything else the whole text is one
user turn.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

_TURN = re.compile(r"<\|im_start\|>(\w+)\n(.*?)(?:<\|im_end\|>|\Z)", re.DOTALL)
_TOOL_RESULT = re.compile(r"<tool_response>\n?(.*?)\n?</tool_response>", re.DOTALL)
_JSON = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Turn:
    """One message."""

    role: str
    """`tool` for tool results, whatever role the template wraps them in."""
    text: str


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A function the assistant may call."""

    name: str
    parameters: tuple[str, ...]
    """Names of its parameters, in schema order."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Everything before the generation prompt, and how that prompt ends."""

    turns: tuple[Turn, ...]
    tools: tuple[OfferedTool, ...]
    thinking_open: bool
    """The generation prompt has opened the reasoning block."""
    thinking_done: bool
    """The generation prompt has closed it again: no reasoning wanted."""

    @property
    def results(self) -> list[str]:
        """Tool results since the last user turn."""
        found: list[str] = []
        for turn in reversed(self.turns):
            if turn.role != "tool":
                break
            found.append(turn.text)
        return found[::-1]


def read(prompt: str) -> Conversation:
    """The conversation in a decoded prompt."""
    matches = list(_TURN.finditer(prompt))
    opener = matches[-1].group(2) if matches and matches[-1].group(1) == "assistant" else ""
    closed = [match for match in matches if match.group(0).endswith("<|im_end|>")]
    turns = [turn for match in closed for turn in _turns(match.group(1), match.group(2))]
    first = turns[0].text if turns and turns[0].role == "system" else ""
    return Conversation(
        turns=tuple(turns) or (Turn("user", prompt),),
        tools=_tools(first),
        thinking_open="<think>" in opener and "</think>" not in opener,
        thinking_done="</think>" in opener,
    )


def _turns(role: str, text: str) -> list[Turn]:
    results = _TOOL_RESULT.findall(text)
    if results and role in ("user", "tool"):
        return [Turn("tool", result) for result in results]
    return [Turn(role, text.strip())]


def _tools(system: str) -> tuple[OfferedTool, ...]:
    """Every JSON object of the system turn that looks like a tool definition."""
    found: list[OfferedTool] = []
    at = system.find("{")
    while at >= 0:
        try:
            value, end = _JSON.raw_decode(system, at)
        except ValueError:
            end = at + 1
        else:
            found += _as_tool(value)
        at = system.find("{", end)
    return tuple(found)


def _as_tool(value: Any) -> list[OfferedTool]:
    function = value.get("function", value) if isinstance(value, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return []
    schema = function.get("parameters")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return [OfferedTool(function["name"], tuple(properties) if isinstance(properties, dict) else ())]
