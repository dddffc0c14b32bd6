"""The canonical form that policy `linear` compares: what a conversation says, free of how clients spell it.
So does policy `tree` without healing, whose chains end where ids drift and not where a spelling changes.

`developer` is `system`; text parts are joined by a newline; ids are dropped; arguments are parsed; key
order is free. Other content parts, unknown roles and odd calls count with their full content. Types are
kept apart: 1, 1.0 and true differ. Not a selectable matcher. Invariant: two messages match exactly when
their forms are equal texts.
"""

from collections.abc import Iterator
from typing import Any

from sessions_app.history.matchers.arguments import typed_form
from sessions_app.history.matchers.base import Message
from sessions_app.history.matchers.canonical import NoCanonicalForm, canonical, digest, typed_number
from sessions_app.history.matchers.guard import verdict
from sessions_app.history.matchers.values import present, same_types

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_TEXT_TYPES = ("text", "input_text", "output_text")
_CALL_IDS = ("id", "index")


class LinearForm:
    """See the module."""

    name = "linear_form"

    def matches(self, stored: Message, replayed: Message) -> bool:
        return verdict(_same, stored, replayed)

    def key(self, message: Message) -> bytes | None:
        text = _form(message)
        return None if text is None else digest(text)


LINEAR_FORM = LinearForm()


def uses_linear_form(policy: str, *, healing: bool) -> bool:
    """Whether a session compares this form, whatever its own matcher is."""
    return policy == "linear" or (policy == "tree" and not healing)


def _same(stored: Message, replayed: Message) -> bool:
    forms = _form(stored), _form(replayed)
    return same_types(dict(stored), dict(replayed)) if None in forms else forms[0] == forms[1]


def _form(message: Message) -> str | None:
    try:
        role = _ROLES.get(message.get("role"))  # type: ignore[arg-type]
        if role is None:
            return f"unknown{canonical(dict(message), typed_number)}"
        text = f"{role}:{_content_form(message.get('content'))}"
        return text + _assistant_form(message) if role == "assistant" else text
    except (NoCanonicalForm, TypeError):
        return None


def _content_form(content: Any) -> str:
    if type(content) is str or content is None:
        return canonical(content or "", typed_number)
    if type(content) is not list:
        return f"other{canonical(content, typed_number)}"
    segments = list(_segments(content))
    if len(segments) == 1 and type(segments[0]) is str:
        return canonical(segments[0], typed_number)
    return canonical(segments, typed_number) if segments else canonical("", typed_number)


def _segments(parts: list[Any]) -> Iterator[Any]:
    """Runs of text joined to one string each, and every other part as it is, without its cache marker."""
    run: list[str] = []
    for part in parts:
        text = _text_of(part)
        if text is None:
            if run:
                yield "\n".join(run)
            run = []
            yield _without(part, ("cache_control",))
        elif text:
            run.append(text)
    if run:
        yield "\n".join(run)


def _text_of(part: Any) -> str | None:
    if type(part) is dict and part.get("type") in _TEXT_TYPES and type(part.get("text")) is str:
        return part["text"]
    return None


def _assistant_form(message: Message) -> str:
    reasoning = canonical(present(message.get("reasoning_content")), typed_number)
    calls = present(message.get("tool_calls"))
    if type(calls) is not list:
        return f"{reasoning}{canonical(calls, typed_number)}"
    return f"{reasoning}[{''.join(map(_call_form, calls))}]"


def _call_form(call: Any) -> str:
    function = call.get("function") if type(call) is dict else None
    if type(function) is not dict:
        return f"other{canonical(_without(call, _CALL_IDS), typed_number)}"
    return f"call{canonical(function.get('name'), typed_number)}{_arguments_form(function.get('arguments'))}"


def _arguments_form(arguments: Any) -> str:
    form = typed_form(arguments)
    return f"raw{canonical(arguments, typed_number)}" if form is None else form


def _without(value: Any, names: tuple[str, ...]) -> Any:
    if type(value) is not dict:
        return value
    return {name: item for name, item in value.items() if name not in names}
