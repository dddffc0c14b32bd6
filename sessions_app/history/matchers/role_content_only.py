"""`role_content_only`: role and content are equal. Tool calls and reasoning are not looked at.

Dangerous for training: two different actions with the same text are one message to it.
"""

from sessions_app.history.matchers.base import Message
from sessions_app.history.matchers.canonical import NoCanonicalForm, canonical, digest, lenient_number
from sessions_app.history.matchers.guard import verdict
from sessions_app.history.matchers.values import equal, present

_FIELDS = ("role", "content")


class RoleContentOnly:
    """See the module."""

    name = "role_content_only"

    def matches(self, stored: Message, replayed: Message) -> bool:
        return verdict(_same, stored, replayed)

    def key(self, message: Message) -> bytes | None:
        try:
            return digest(_text(message))
        except NoCanonicalForm:
            return None


def _same(stored: Message, replayed: Message) -> bool:
    return all(equal(present(stored.get(field)), present(replayed.get(field))) for field in _FIELDS)


def _text(message: Message) -> str:
    return "".join(canonical(present(message.get(field)), lenient_number) for field in _FIELDS)
