"""What the grammars with blocks of calls share: where the blocks are, and values that are bare text.

Invariant: text may precede the blocks and white space may separate them; anything else is malformed, never
dropped.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sessions_app.rendering.parsers.json_text import load
from sessions_app.rendering.parsers.reply import MalformedCalls
from sessions_app.rendering.protocol import Tool

OPEN, CLOSE = "<tool_call>", "</tool_call>"
_NO_JSON = frozenset({"NaN", "Infinity", "-Infinity"})


def blocks_of(text: str) -> tuple[str, list[str]]:
    """The text in front of the `<tool_call>` blocks, and what stands in each. Raises MalformedCalls."""
    return sections_of(text, OPEN, CLOSE)


def sections_of(text: str, opener: str, closer: str) -> tuple[str, list[str]]:
    """The same for blocks between any two marks."""
    content, opened, rest = text.partition(opener)
    bodies = []
    while opened:
        body, closed, rest = rest.partition(closer)
        if not closed:
            raise MalformedCalls("a tool call is not closed")
        bodies.append(body)
        between, opened, rest = rest.partition(opener)
        if between.strip():
            raise MalformedCalls("text after a tool call")
    return content, bodies


def value_of(text: str, declared: Any) -> Any:
    """A parameter's value from its bare text: verbatim where the tool declares a string, else JSON if it
    is JSON."""
    if declared == "string" or text in _NO_JSON:
        return text
    try:
        value, end = load(text)
    except (ValueError, RecursionError):
        return text
    return text if text[end:].strip() else value


def declared_types(name: str, tools: Sequence[Tool] | None) -> Mapping[str, Any]:
    """Parameter names to the types that the offered tool of this name declares; {} where nothing is
    declared."""
    for tool in tools or ():
        function = tool.get("function", tool) if isinstance(tool, Mapping) else {}
        if isinstance(function, Mapping) and function.get("name") == name:
            parameters = function.get("parameters")
            properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
            items = properties.items() if isinstance(properties, Mapping) else ()
            return {key: schema.get("type") for key, schema in items if isinstance(schema, Mapping)}
    return {}
