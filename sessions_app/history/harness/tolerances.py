"""What a harness is allowed to change in a replay: one declared tolerance each.

A tolerance maps a message to a form in which the change cannot be seen; messages are compared in that form
and in no other way changed. Invariants: a tolerance is pure, returns the message itself where it has
nothing to do, and applying it twice is applying it once.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from sessions_app.history.harness.told_calls import calls_from_text
from sessions_app.history.matchers.arguments import loose_form, read_text
from sessions_app.history.matchers.base import Message
from sessions_app.history.matchers.values import present

Text = Callable[[str], str]

_SYSTEM = ("system", "developer")
_REMINDED = ("user", "tool", "system", "developer")
_TEXT_TYPES = ("text", "input_text", "output_text")
_BILLING_HEADER = re.compile(
    r"^x-anthropic-billing-header:(?:[ \t]*[\w.-]+=[^;\n]*;?)*[ \t]*\n*", re.MULTILINE
)
_REMINDER, _REMINDER_END = "<system-reminder>", "</system-reminder>"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """One kind of change that does not count."""

    name: str
    """Unique; events name it as `profile/name`."""
    declares: str
    """What may differ, for people who decide whether to allow it."""
    form: Callable[[Message], Message]
    """The message with the tolerated part taken out or brought to one spelling."""
    passes: Callable[[Message], bool] | None = None
    """Which whole messages may come and go; None: none."""

    def lets_pass(self, message: Message) -> bool:
        """Whether a whole message may come and go."""
        return self.passes is not None and self.passes(message)


def cut_pattern(name: str, pattern: str, roles: Iterable[str], *, passes: bool = False) -> Tolerance:
    """A tolerance for whatever a regular expression finds in texts of some roles. Raises re.error.

    `passes`: a user's message that says nothing else may come and go.
    """
    expression, cut_roles = re.compile(pattern), tuple(roles)
    declares = f"text that matches {pattern} in messages of {', '.join(sorted(cut_roles))}"

    def form(message: Message) -> Message:
        return _texts(message, cut_roles, lambda text: expression.sub("", text))

    return Tolerance(name, declares, form, partial(_leaves_nothing, form) if passes else None)


def _leaves_nothing(form: Callable[[Message], Message], message: Message) -> bool:
    """Whether a user's message says what is cut, and nothing else."""
    if message.get("role") != "user" or present(message.get("tool_calls")) is not None:
        return False
    left = form(message)
    return left is not message and present(left.get("content")) is None


def without_billing_header(text: str) -> str:
    """A system prompt without the line whose checksum changes."""
    return _BILLING_HEADER.sub("", text)


def _billing_header(message: Message) -> Message:
    return _texts(message, _SYSTEM, without_billing_header)


def _system_reminders(message: Message) -> Message:
    return _texts(message, _REMINDED, without_reminders)


def without_reminders(text: str) -> str:
    """A text without its <system-reminder> blocks, what stands around them on lines of its own. One pass,
    whatever a client sends.
    """
    pieces, at = [], 0
    while (start := text.find(_REMINDER, at)) >= 0 and (end := text.find(_REMINDER_END, start)) >= 0:
        pieces.append(text[at:start].strip())
        at = end + len(_REMINDER_END)
    if not at:
        return text
    return "\n".join(piece for piece in [*pieces, text[at:].strip()] if piece)


def _cache_control(message: Message) -> Message:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    bare = [_without(part, ("cache_control",)) for part in content]
    return message if bare == content else {**message, "content": bare}


def _text_parts(message: Message) -> Message:
    content = message.get("content")
    if not isinstance(content, list) or not all(_is_text(part) for part in content):
        return message
    return {**message, "content": "\n".join(part["text"] for part in content if part["text"])}


def _trailing_blanks(message: Message) -> Message:
    return _texts(message, ("assistant",), str.rstrip)


def _dropped_reasoning(message: Message) -> Message:
    return _without(message, ("reasoning_content",)) if "reasoning_content" in message else message


def _text_beside_calls(message: Message) -> Message:
    return (
        {**message, "content": None}
        if present(message.get("tool_calls")) and message.get("content")
        else message
    )


def _read_arguments(message: Message) -> Message:
    return _calls(message, _as_read)


def _respelled_arguments(message: Message) -> Message:
    return _calls(message, _with_one_spelling)


def _call_ids(message: Message) -> Message:
    return _calls(message, lambda call: _without(call, ("id", "type", "index")))


def _null_call_fields(message: Message) -> Message:
    return _calls(message, _without_nulls)


def _as_read(call: dict[str, Any]) -> dict[str, Any]:
    function = call.get("function")
    text = read_text(function.get("arguments")) if isinstance(function, dict) else None
    return call if text is None else {**call, "function": {**call["function"], "arguments": text}}


def _with_one_spelling(call: dict[str, Any]) -> dict[str, Any]:
    function = call.get("function")
    if not isinstance(function, dict) or "arguments" not in function:
        return call
    form = loose_form(function["arguments"])
    if form is None:
        return call
    return {**call, "function": {**_without(function, ("arguments",)), "arguments_form": form}}


def _without_nulls(call: dict[str, Any]) -> dict[str, Any]:
    function = call.get("function")
    kept = {name: value for name, value in call.items() if value is not None}
    if isinstance(function, dict):
        kept["function"] = {name: value for name, value in function.items() if value is not None}
    return kept


def _calls(message: Message, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Message:
    calls = message.get("tool_calls")
    if not isinstance(calls, list) or not calls:
        return message
    return {**message, "tool_calls": [change(call) if isinstance(call, dict) else call for call in calls]}


def _texts(message: Message, roles: tuple[str, ...], change: Text) -> Message:
    """The message with its texts changed, if it has one of the roles; parts left without text are dropped."""
    content = message.get("content")
    if message.get("role") not in roles or not content:
        return message
    if isinstance(content, str):
        changed: Any = change(content)
    elif isinstance(content, list):
        changed = [part for part in (_changed_part(part, change) for part in content) if part is not None]
    else:
        return message
    return message if changed == content else {**message, "content": changed}


def _changed_part(part: Any, change: Text) -> Any:
    if not _is_text(part):
        return part
    text = change(part["text"])
    return {**part, "text": text} if text or not part["text"] else None


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in _TEXT_TYPES and isinstance(part.get("text"), str)


def _without(value: Any, names: tuple[str, ...]) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {name: item for name, item in value.items() if name not in names}


_ALL = (
    Tolerance(
        "billing-header", "the billing line in the system prompt, whose checksum changes", _billing_header
    ),
    Tolerance(
        "system-reminders",
        "<system-reminder> blocks and the blanks around them; a user's message that says nothing else",
        _system_reminders,
        partial(_leaves_nothing, _system_reminders),
    ),
    Tolerance("cache-control", "cache_control on content parts", _cache_control),
    Tolerance("text-parts", "a text in place of a list of text parts", _text_parts),
    Tolerance(
        "told-calls", "calls told as text behind `Calling tools:`, and blanks around a reply", calls_from_text
    ),
    Tolerance("trailing-blanks", "white space at the end of a reply's text", _trailing_blanks),
    Tolerance("dropped-reasoning", "reasoning of replies, dropped or changed", _dropped_reasoning),
    Tolerance("text-beside-calls", "the text of replies that call tools", _text_beside_calls),
    Tolerance("null-call-fields", "fields of a call that are null", _null_call_fields),
    Tolerance("call-ids", "ids, types and positions of calls", _call_ids),
    Tolerance(
        "read-arguments",
        "what is lost when arguments are read: equal keys but the last, digits beyond those of a double",
        _read_arguments,
    ),
    Tolerance(
        "respelled-arguments", "spelling of arguments: key order, blanks, 1 for 1.0", _respelled_arguments
    ),
)

TOLERANCES: Mapping[str, Tolerance] = MappingProxyType({tolerance.name: tolerance for tolerance in _ALL})
"""By name, in the order in which they are applied."""
