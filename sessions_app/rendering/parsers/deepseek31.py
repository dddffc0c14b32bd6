"""DeepSeek V3.1's calls: `<｜tool▁calls▁begin｜>`, calls, `<｜tool▁calls▁end｜>`; a call is
`<｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{…}<｜tool▁call▁end｜>`."""

import re
from collections.abc import Sequence

from sessions_app.rendering.parsers.marked import marked_calls
from sessions_app.rendering.parsers.reply import ToolCall
from sessions_app.rendering.protocol import Tool

_SECTION = ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")
_HEAD = re.compile(r"\s*<｜tool▁call▁begin｜>\s*([^\s<]+)\s*<｜tool▁sep｜>")
_END = "<｜tool▁call▁end｜>"


class DeepSeek31ToolParser:
    """TITO_TOOL_PARSER=deepseek-v3.1."""

    def extract(self, text: str, tools: Sequence[Tool] | None) -> tuple[str, list[ToolCall]]:
        """See ToolParser."""
        content, calls = marked_calls(text, _SECTION, _HEAD, _END)
        return content, [ToolCall(head[1], arguments) for head, arguments in calls]
