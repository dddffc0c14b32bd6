"""Tool-call grammars of the package `renderers`, by the names of its registry.

Its parsers read ids; ours get the text that reasoning left over, so the text is encoded again. That costs
nothing but time: what was sampled stays stored as sampled. Invariant: text that such a parser would drop
makes the turn malformed instead.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sessions_app.rendering.package import catalogue
from sessions_app.rendering.package.tokenizer import PackageTokenizer
from sessions_app.rendering.parsers.json_text import dump
from sessions_app.rendering.parsers.reply import MalformedCalls, ToolCall
from sessions_app.rendering.protocol import Tool
from sessions_app.rendering.tokenizer import ChatTokenizer

NAMES = ("deepseek-v3",)
_READABLE = frozenset({"ok", "unknown_tool", "invalid_json"})
"""Outcomes that may come with a name and an object of arguments: whether the tool exists is not a parser's
business, and formats without quotes call every bare text invalid JSON."""


class PackageToolParser:
    """One grammar of the package."""

    def __init__(self, name: str, tokenizer: ChatTokenizer) -> None:
        self._tokenizer = tokenizer
        self._inner = catalogue.tool_parser(name, PackageTokenizer(tokenizer))

    def extract(self, text: str, tools: Sequence[Tool] | None) -> tuple[str, list[ToolCall]]:
        """See ToolParser."""
        ids = self._tokenizer.encode(text).tolist()
        try:
            content, calls = self._inner.extract(ids)
        except Exception as error:
            raise MalformedCalls(type(error).__name__) from error
        if not calls:
            return text, []
        self._require_nothing_else(ids, calls)
        return self._tokenizer.decode(content), [called(call) for call in calls]

    def _require_nothing_else(self, ids: list[int], calls: list[Any]) -> None:
        """Only marks and white space may stand between calls and behind the last one."""
        spans = [call.token_span for call in calls if call.token_span is not None]
        starts = [*(start for start, _ in spans[1:]), len(ids)]
        for (_, end), start in zip(spans, starts, strict=True):
            rest = [number for number in ids[end:start] if number not in self._tokenizer.marks]
            if self._tokenizer.decode(rest).strip():
                raise MalformedCalls("text after a tool call")


def called(call: Any) -> ToolCall:
    """A call as the package parsed it. Raises MalformedCalls."""
    arguments = {} if call.arguments is None else call.arguments
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            raise MalformedCalls("the arguments of a tool call are not JSON") from None
    if str(call.status) not in _READABLE or not call.name or not isinstance(arguments, Mapping):
        raise MalformedCalls(str(call.status))
    return ToolCall(call.name, dump(dict(arguments)), call.id)
