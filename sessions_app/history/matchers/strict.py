"""`strict`, the default: equal role, content, reasoning and tool calls; nothing else is compared.

Equality is Python's `==`; null, "", [] and a missing field are one; a tool call's `index` does not count.
"""

from typing import Any

from sessions_app.history.matchers.base import Message
from sessions_app.history.matchers.canonical import NoCanonicalForm, canonical, digest, lenient_number
from sessions_app.history.matchers.guard import verdict
from sessions_app.history.matchers.values import equal, present, without_index

_OUTSIDE_CALLS = ("role", "content", "reasoning_content")


class Strict:
    """See the module."""

    name = "strict"

    def matches(self, stored: Message, replayed: Message) -> bool:
        return verdict(same_strictly, stored, replayed)

    def key(self, message: Message) -> bytes | None:
        text = plain_text(message)
        if text is None:
            try:
                text = same_text(message)
            except NoCanonicalForm:
                return None
        return digest(text)


def same_strictly(stored: Message, replayed: Message) -> bool:
    """The rule of `strict`."""
    return same_outside_calls(stored, replayed) and equal(calls_of(stored), calls_of(replayed))


def same_outside_calls(stored: Message, replayed: Message) -> bool:
    """Whether role, content and reasoning are equal."""
    return all(equal(present(stored.get(field)), present(replayed.get(field))) for field in _OUTSIDE_CALLS)


def calls_of(message: Message) -> Any:
    """The tool calls without their `index`; null when there are none."""
    calls = present(message.get("tool_calls"))
    return [without_index(call) for call in calls] if type(calls) is list else calls


def plain_text(message: Message) -> str | None:
    """Canonical text of the common message (role and text, nothing else to compare), None for any other."""
    role, content = message.get("role"), message.get("content")
    if type(role) is not str or type(content) is not str or not role or not content:
        return None
    if message.get("tool_calls") is not None or message.get("reasoning_content") is not None:
        return None
    return f"s{len(role)}:{role}s{len(content)}:{content}zz"


def same_text(message: Message) -> str:
    """Canonical text of any message; agrees with `plain_text`."""
    return text_outside_calls(message) + canonical(calls_of(message), lenient_number)


def text_outside_calls(message: Message) -> str:
    """Canonical text of role, content and reasoning."""
    return "".join(canonical(present(message.get(field)), lenient_number) for field in _OUTSIDE_CALLS)
