"""`exact`: `strict` with JSON types kept apart at every level (1, 1.0, true differ). Arguments are text."""

from sessions_app.history.matchers.base import Message
from sessions_app.history.matchers.canonical import NoCanonicalForm, canonical, digest, typed_number
from sessions_app.history.matchers.guard import verdict
from sessions_app.history.matchers.strict import calls_of, plain_text
from sessions_app.history.matchers.values import present, same_types

_FIELDS = ("role", "content", "reasoning_content")


class Exact:
    """See the module."""

    name = "exact"

    def matches(self, stored: Message, replayed: Message) -> bool:
        return verdict(_same, stored, replayed)

    def key(self, message: Message) -> bytes | None:
        text = plain_text(message)
        if text is None:
            try:
                text = _text(message)
            except NoCanonicalForm:
                return None
        return digest(text)


def _same(stored: Message, replayed: Message) -> bool:
    return all(
        same_types(present(stored.get(field)), present(replayed.get(field))) for field in _FIELDS
    ) and same_types(calls_of(stored), calls_of(replayed))


def _text(message: Message) -> str:
    fields = "".join(canonical(present(message.get(field)), typed_number) for field in _FIELDS)
    return fields + canonical(calls_of(message), typed_number)
