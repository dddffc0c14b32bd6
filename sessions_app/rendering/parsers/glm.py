"""`<tool_call>NAME<arg_key>key</arg_key><arg_value>value</arg_value>…</tool_call>`, line breaks in
between."""

import re
from collections.abc import Sequence

from sessions_app.rendering.parsers.blocks import blocks_of, declared_types, value_of
from sessions_app.rendering.parsers.json_text import dump
from sessions_app.rendering.parsers.reply import MalformedCalls, ToolCall
from sessions_app.rendering.protocol import Tool

_NAME = re.compile(r"\s*([^\s<]+)\s*")
_ARGUMENT = re.compile(r"\s*<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>\s*", re.DOTALL)


class GlmToolParser:
    """TITO_TOOL_PARSER=glm."""

    def extract(self, text: str, tools: Sequence[Tool] | None) -> tuple[str, list[ToolCall]]:
        """See ToolParser. Exactly one newline before the first call belongs to the grammar."""
        content, bodies = blocks_of(text)
        calls = [_call(body, tools) for body in bodies]
        return (content.removesuffix("\n") if calls else text), calls


def _call(body: str, tools: Sequence[Tool] | None) -> ToolCall:
    name = _NAME.match(body)
    if name is None:
        raise MalformedCalls("a tool call has no name")
    types = declared_types(name[1], tools)
    arguments, position = {}, name.end()
    while argument := _ARGUMENT.match(body, position):
        key = argument[1].strip()
        arguments[key] = value_of(argument[2], types.get(key))
        position = argument.end()
    if position < len(body):
        raise MalformedCalls("text between the arguments of a tool call")
    return ToolCall(name[1], dump(arguments))
