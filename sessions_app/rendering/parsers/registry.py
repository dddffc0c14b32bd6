"""Parsers by the names that TITO_TOOL_PARSER and TITO_REASONING_PARSER take."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from sessions_app.rendering.parsers.deepseek31 import DeepSeek31ToolParser
from sessions_app.rendering.parsers.glm import GlmToolParser
from sessions_app.rendering.parsers.kimi import KimiToolParser
from sessions_app.rendering.parsers.minimax import MinimaxToolParser
from sessions_app.rendering.parsers.package import NAMES as PACKAGE_NAMES
from sessions_app.rendering.parsers.package import PackageToolParser
from sessions_app.rendering.parsers.qwen3 import NoTools, Qwen3ToolParser
from sessions_app.rendering.parsers.qwen35 import Qwen35ToolParser
from sessions_app.rendering.parsers.reply import ReasoningParser, ReplyParser, ToolParser
from sessions_app.rendering.parsers.think import NoReasoning, ThinkParser
from sessions_app.rendering.tokenizer import ChatTokenizer

_Grammar = TypeVar("_Grammar")

TOOL_PARSERS: Mapping[str, Callable[[ChatTokenizer], ToolParser]] = {
    "qwen3": lambda _: Qwen3ToolParser(),
    "qwen3.5": lambda _: Qwen35ToolParser(),
    "glm": lambda _: GlmToolParser(),
    "deepseek-v3.1": lambda _: DeepSeek31ToolParser(),
    "kimi-k2": lambda _: KimiToolParser(),
    "minimax-m2": lambda _: MinimaxToolParser(),
    "none": lambda _: NoTools(),
    **{name: partial(PackageToolParser, name) for name in PACKAGE_NAMES},
}
REASONING_PARSERS: Mapping[str, Callable[[str], ReasoningParser]] = {
    "think": lambda tools: ThinkParser(after_newline=tools == "glm", opener_optional=tools == "qwen3.5"),
    "none": lambda _: NoReasoning(),
}
"""Made for the tool grammar that they stand beside: models differ in how they open their reasoning."""
_ENDS: Mapping[str, str] = {"qwen3": "<|im_end|>"}
"""Tool grammars that name the token behind which nothing is read."""


def reply_parser(tool_parser: str, reasoning_parser: str, tokenizer: ChatTokenizer) -> ReplyParser:
    """The parser of these two grammars. Raises ValueError for an unknown name."""
    return ReplyParser(
        _named(REASONING_PARSERS, reasoning_parser, "TITO_REASONING_PARSER")(tool_parser),
        _named(TOOL_PARSERS, tool_parser, "TITO_TOOL_PARSER")(tokenizer),
        ends=_ends(tool_parser, tokenizer),
    )


def _ends(tool_parser: str, tokenizer: ChatTokenizer) -> frozenset[int]:
    end = tokenizer.token_id(_ENDS[tool_parser]) if tool_parser in _ENDS else None
    return frozenset({end} if end in tokenizer.marks else ())


def _named(table: Mapping[str, _Grammar], name: str, setting: str) -> _Grammar:
    if name not in table:
        raise ValueError(f"{setting}={name!r} is not one of: {', '.join(sorted(table))}")
    return table[name]
