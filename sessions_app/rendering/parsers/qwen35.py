"""`<tool_call><function=NAME><parameter=KEY>value</parameter>…</function></tool_call>`."""

import re
from collections.abc import Sequence

from sessions_app.rendering.parsers.blocks import blocks_of, declared_types, value_of
from sessions_app.rendering.parsers.json_text import dump
from sessions_app.rendering.parsers.reply import MalformedCalls, ToolCall
from sessions_app.rendering.protocol import Tool

_FUNCTION = re.compile(r"\s*<function=([^>\n]+)>(.*)</function>\s*", re.DOTALL)
_PARAMETER = re.compile(r"\s*<parameter=([^>\n]+)>\n?(.*?)\n?</parameter>", re.DOTALL)


class Qwen35ToolParser:
    """TITO_TOOL_PARSER=qwen3.5. Values may stand on lines of their own or not."""

    def extract(self, text: str, tools: Sequence[Tool] | None) -> tuple[str, list[ToolCall]]:
        """See ToolParser. All newlines before the first call belong to the grammar."""
        content, bodies = blocks_of(text)
        calls = [_call(body, tools) for body in bodies]
        return (content.rstrip("\n") if calls else text), calls


def _call(body: str, tools: Sequence[Tool] | None) -> ToolCall:
    function = _FUNCTION.fullmatch(body)
    if function is None:
        raise MalformedCalls("a tool call names no function")
    name, inside = function[1], function[2]
    types = declared_types(name, tools)
    arguments, position = {}, 0
    while parameter := _PARAMETER.match(inside, position):
        arguments[parameter[1]] = value_of(parameter[2], types.get(parameter[1]))
        position = parameter.end()
    if inside[position:].strip():
        raise MalformedCalls("text between the parameters of a tool call")
    return ToolCall(name, dump(arguments))
