"""System messages in the middle of a conversation, which most templates refuse: they become reminders.

Wrapped as `<system-reminder>`, they join a user's message beside them. Invariant: nothing is reordered across
a reply, so a history that grew at its end still does so after folding; only policy `linear` folds as the
reference gateway does, into the nearest earlier user message wherever that stands.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sessions_app.protocols.canonical import Own


@dataclass(frozen=True, slots=True)
class Spoken:
    """A client's message with its content as blocks."""

    role: str
    blocks: tuple[dict[str, Any], ...]
    where: str
    """Its place in the request, for errors."""
    own: tuple[Own, ...]
    inputs: Sequence[str | None] = ()
    """Of each block of a reply, its `input` as spelled; empty where the values say all of it."""


def text_block(text: str) -> dict[str, Any]:
    """A text as a block."""
    return {"type": "text", "text": text}


def folded(messages: Iterable[Spoken], *, across_replies: bool) -> list[Spoken]:
    """The conversation without system messages behind its first message."""
    groups: list[list[Spoken]] = []
    """What becomes one message each."""
    user: list[Spoken] | None = None
    """The group of the user whom a reminder may join."""
    waiting: list[Spoken] = []
    for index, message in enumerate(messages):
        if message.role == "system" and index:
            reminder = replace(message, role="user", blocks=(_wrapped(message),))
            (waiting if user is None else user).append(reminder)
        elif message.role == "user":
            user, waiting = [*waiting, message], []
            groups.append(user)
        else:
            if not across_replies:
                groups += [[reminder] for reminder in waiting]
                user, waiting = None, []
            groups.append([message])
    groups += [[reminder] for reminder in waiting]
    return [_joined(group) for group in groups]


def _joined(messages: list[Spoken]) -> Spoken:
    if len(messages) == 1:
        return messages[0]
    blocks = tuple(block for message in messages for block in message.blocks)
    own = tuple(own for message in messages for own in message.own)
    return replace(messages[0], blocks=blocks, own=own)


def _wrapped(message: Spoken) -> dict[str, Any]:
    text = "\n".join(block.get("text", "") for block in message.blocks)
    return text_block(f"<system-reminder>\n{text}\n</system-reminder>\n")
