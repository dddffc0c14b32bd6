"""`<tool_call>{"name": …, "arguments": {…}}</tool_call>`, any number of them at the end of a turn.

Text may precede the calls, white space may separate them, nothing else may follow one. Names are not
checked against the offered tools: calling a tool that does not exist is an action of the model.
"""

from collections.abc import Sequence

from sessions_app.rendering.parsers.blocks import CLOSE, OPEN
from sessions_app.rendering.parsers.json_text import dump, load
from sessions_app.rendering.parsers.reply import MalformedCalls, ToolCall
from sessions_app.rendering.protocol import Tool


class Qwen3ToolParser:
    """TITO_TOOL_PARSER=qwen3."""

    def extract(self, text: str, tools: Sequence[Tool] | None) -> tuple[str, list[ToolCall]]:
        """See ToolParser. Exactly one newline before the first call belongs to the grammar."""
        content, opened, rest = text.partition(OPEN)
        if not opened:
            return text, []
        calls = []
        while opened:
            call, rest = _call(rest)
            calls.append(call)
            between, opened, rest = rest.partition(OPEN)
            if between.strip():
                raise MalformedCalls("text after a tool call")
        return content.removesuffix("\n"), calls


def _call(text: str) -> tuple[ToolCall, str]:
    """The call at the start of the text, and what follows its close."""
    try:
        value, end = load(text)
    except (ValueError, RecursionError):
        raise MalformedCalls("a tool call is not JSON") from None
    rest = text[end:].lstrip()
    if not rest.startswith(CLOSE):
        raise MalformedCalls("a tool call is not closed")
    return _checked(value), rest[len(CLOSE) :]


def _checked(value: object) -> ToolCall:
    if not isinstance(value, dict) or type(value.get("name")) is not str:
        raise MalformedCalls("a tool call has no name")
    arguments = value.get("arguments")
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        raise MalformedCalls("the arguments of a tool call are no object")
    return ToolCall(value["name"], dump(arguments))


class NoTools:
    """TITO_TOOL_PARSER=none: everything is text."""

    def extract(self, text: str, tools: Sequence[Tool] | None) -> tuple[str, list[ToolCall]]:
        """See ToolParser."""
        return text, []
