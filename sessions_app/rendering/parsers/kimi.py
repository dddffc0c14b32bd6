"""Kimi's section of calls: `<|tool_calls_section_begin|>`, calls, `<|tool_calls_section_end|>`; a call is
`<|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{…}<|tool_call_end|>`.

Invariant: a call keeps the id that the model gave it, because results answer to it.
"""

import re
from collections.abc import Sequence

from sessions_app.rendering.parsers.blocks import sections_of
from sessions_app.rendering.parsers.json_text import dump, load
from sessions_app.rendering.parsers.reply import MalformedCalls, ToolCall
from sessions_app.rendering.protocol import Tool

_SECTION = ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>")
_HEAD = re.compile(r"\s*<\|tool_call_begin\|>\s*(functions\.([^\s<]+):\d+)\s*<\|tool_call_argument_begin\|>")
_END = "<|tool_call_end|>"


class KimiToolParser:
    """TITO_TOOL_PARSER=kimi-k2."""

    def extract(self, text: str, tools: Sequence[Tool] | None) -> tuple[str, list[ToolCall]]:
        """See ToolParser. A turn has one section."""
        content, bodies = sections_of(text, *_SECTION)
        if len(bodies) > 1:
            raise MalformedCalls("more than one section of tool calls")
        return (content, _calls(bodies[0])) if bodies else (text, [])


def _calls(body: str) -> list[ToolCall]:
    calls: list[ToolCall] = []
    while body.strip() or not calls:
        call, body = _first(body)
        calls.append(call)
    return calls


def _first(body: str) -> tuple[ToolCall, str]:
    """The call at the start of a section, and what follows it."""
    head = _HEAD.match(body)
    if head is None:
        raise MalformedCalls("a tool call has no id that names a function")
    inside = body[head.end() :]
    try:
        arguments, end = load(inside)
    except (ValueError, RecursionError):
        raise MalformedCalls("the arguments of a tool call are not JSON") from None
    rest = inside[end:].lstrip()
    if not isinstance(arguments, dict) or not rest.startswith(_END):
        raise MalformedCalls("the arguments of a tool call are no object, or the call is not closed")
    return ToolCall(head[2], dump(arguments), head[1]), rest[len(_END) :]
