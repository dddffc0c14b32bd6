"""What the grammars share that put all calls of a turn into one section, each as a head, a JSON object and an
end mark.

Invariant: text may precede the section, white space may stand between its calls; anything else is malformed,
never dropped.
"""

import re

from sessions_app.rendering.parsers.blocks import sections_of
from sessions_app.rendering.parsers.json_text import dump, load
from sessions_app.rendering.parsers.reply import MalformedCalls


def marked_calls(
    text: str, section: tuple[str, str], head: re.Pattern[str], end: str
) -> tuple[str, list[tuple[re.Match[str], str]]]:
    """The text in front of the section; each call's head and the JSON text of its arguments."""
    content, bodies = sections_of(text, *section)
    if len(bodies) > 1:
        raise MalformedCalls("more than one section of tool calls")
    return (content, _calls(bodies[0], head, end)) if bodies else (text, [])


def _calls(body: str, head: re.Pattern[str], end: str) -> list[tuple[re.Match[str], str]]:
    calls: list[tuple[re.Match[str], str]] = []
    while body.strip() or not calls:
        opened = head.match(body)
        if opened is None:
            raise MalformedCalls("a tool call names no function")
        arguments, body = _arguments(body[opened.end() :], end)
        calls.append((opened, arguments))
    return calls


def _arguments(inside: str, end: str) -> tuple[str, str]:
    """JSON text of the object at the start of what a head opens, and what follows the call."""
    try:
        arguments, stop = load(inside)
    except (ValueError, RecursionError):
        raise MalformedCalls("the arguments of a tool call are not JSON") from None
    rest = inside[stop:].lstrip()
    if not isinstance(arguments, dict) or not rest.startswith(end):
        raise MalformedCalls("the arguments of a tool call are no object, or the call is not closed")
    return dump(arguments), rest[len(end) :]
