"""Kimi's section of calls: `<|tool_calls_section_begin|>`, calls, `<|tool_calls_section_end|>`; a call is
`<|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{…}<|tool_call_end|>`.

Invariant: a call keeps the id that the model gave it, because results answer to it.
"""

import re
from collections.abc import Sequence

from sessions_app.rendering.parsers.marked import marked_calls
from sessions_app.rendering.parsers.reply import ToolCall
from sessions_app.rendering.protocol import Tool

_SECTION = ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>")
_HEAD = re.compile(r"\s*<\|tool_call_begin\|>\s*(functions\.([^\s<]+):\d+)\s*<\|tool_call_argument_begin\|>")
_END = "<|tool_call_end|>"


class KimiToolParser:
    """TITO_TOOL_PARSER=kimi-k2."""

    def extract(self, text: str, tools: Sequence[Tool] | None) -> tuple[str, list[ToolCall]]:
        """See ToolParser."""
        content, calls = marked_calls(text, _SECTION, _HEAD, _END)
        return content, [ToolCall(head[2], arguments, head[1]) for head, arguments in calls]
