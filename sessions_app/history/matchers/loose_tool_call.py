"""`loose_tool_call`: `strict`, and tool-call arguments may be spelled anew (spacing, key order, 1 for 1.0).

A pair matches if `strict` accepts it or if the loose rule does. The two together are an equivalence except
on messages whose non-string arguments hold bools, 0, 1 or numbers at the edge of a float: `strict` takes 1
for true there and the loose rule does not. Such messages get no key.
"""

from typing import Any

from sessions_app.history.matchers.arguments import loose_form, regular_form
from sessions_app.history.matchers.base import Message
from sessions_app.history.matchers.canonical import (
    NoCanonicalForm,
    canonical,
    digest,
    lenient_number,
    refuse_number,
)
from sessions_app.history.matchers.guard import verdict
from sessions_app.history.matchers.strict import (
    calls_of,
    plain_text,
    same_outside_calls,
    same_strictly,
    text_outside_calls,
)
from sessions_app.history.matchers.values import equal, same_types, without_index


class LooseToolCall:
    """See the module."""

    name = "loose_tool_call"

    def matches(self, stored: Message, replayed: Message) -> bool:
        return verdict(_same, stored, replayed)

    def key(self, message: Message) -> bytes | None:
        text = plain_text(message)
        if text is None:
            try:
                text = text_outside_calls(message) + _calls_text(calls_of(message))
            except NoCanonicalForm:
                return None
        return digest(text)


def _same(stored: Message, replayed: Message) -> bool:
    if same_strictly(stored, replayed):
        return True
    calls = stored.get("tool_calls"), replayed.get("tool_calls")
    return same_outside_calls(stored, replayed) and _same_calls(*calls)


def _same_calls(stored: Any, replayed: Any) -> bool:
    if type(stored) is not list or type(replayed) is not list:
        return same_types(stored, replayed)
    return len(stored) == len(replayed) and all(map(_same_call, stored, replayed))


def _same_call(stored: Any, replayed: Any) -> bool:
    return _same_object(without_index(stored), without_index(replayed), "function", _same_function)


def _same_function(stored: Any, replayed: Any) -> bool:
    return _same_object(stored, replayed, "arguments", _same_arguments)


def _same_object(stored: Any, replayed: Any, special: str, same: Any) -> bool:
    """Objects with the same keys, compared by `==` but for one special key; anything else is compared raw."""
    if type(stored) is not dict or type(replayed) is not dict:
        return same_types(stored, replayed)
    return stored.keys() == replayed.keys() and all(
        same(value, replayed[name]) if name == special else equal(value, replayed[name])
        for name, value in stored.items()
    )


def _same_arguments(stored: Any, replayed: Any) -> bool:
    forms = loose_form(stored), loose_form(replayed)
    return same_types(stored, replayed) if None in forms else forms[0] == forms[1]


def _calls_text(calls: Any) -> str:
    if type(calls) is not list:
        return canonical(calls, lenient_number)
    return f"[{''.join(map(_call_text, calls))}]"


def _call_text(call: Any) -> str:
    return _object_text(call, "function", _function_text)


def _function_text(function: Any) -> str:
    return _object_text(function, "arguments", _arguments_text)


def _object_text(value: Any, special: str, text_of: Any) -> str:
    if type(value) is not dict:
        return canonical(value, refuse_number)
    rest = {name: item for name, item in value.items() if name != special}
    text = canonical(rest, lenient_number)
    return f"{text}={text_of(value[special])}" if special in value else text


def _arguments_text(arguments: Any) -> str:
    if type(arguments) is dict:
        return f"a{regular_form(arguments)}"
    form = loose_form(arguments)
    return f"r{canonical(arguments, refuse_number)}" if form is None else f"a{form}"
