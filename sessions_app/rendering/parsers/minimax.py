"""`<invoke name="NAME"><parameter name="KEY">value</parameter>…</invoke>…` between `<minimax:tool_call>` and
`</minimax:tool_call>`, line breaks in between."""

import re
from collections.abc import Sequence

from sessions_app.rendering.parsers.blocks import declared_types, sections_of, value_of
from sessions_app.rendering.parsers.json_text import dump
from sessions_app.rendering.parsers.reply import MalformedCalls, ToolCall
from sessions_app.rendering.protocol import Tool

_BLOCK = ("<minimax:tool_call>", "</minimax:tool_call>")
_INVOKE = re.compile(r'\s*<invoke name="([^"\n]+)">(.*?)</invoke>\s*', re.DOTALL)
_PARAMETER = re.compile(r'\s*<parameter name="([^"\n]+)">(.*?)</parameter>\s*', re.DOTALL)


class MinimaxToolParser:
    """TITO_TOOL_PARSER=minimax-m2."""

    def extract(self, text: str, tools: Sequence[Tool] | None) -> tuple[str, list[ToolCall]]:
        """See ToolParser. Exactly one newline before the first block belongs to the grammar."""
        content, bodies = sections_of(text, *_BLOCK)
        calls = [_call(*invoked, tools) for body in bodies for invoked in _all(_INVOKE, body)]
        return (content.removesuffix("\n") if calls else text), calls


def _call(name: str, body: str, tools: Sequence[Tool] | None) -> ToolCall:
    types = declared_types(name, tools)
    given = _all(_PARAMETER, body) if body.strip() else []
    return ToolCall(name, dump({key: value_of(value, types.get(key)) for key, value in given}))


def _all(pattern: re.Pattern[str], text: str) -> list[tuple[str, str]]:
    """Name and inside of each element; at least one, and nothing else."""
    found, position = [], 0
    while element := pattern.match(text, position):
        found.append((element[1], element[2]))
        position = element.end()
    if position < len(text) or not found:
        raise MalformedCalls("text between the parts of a tool call")
    return found
