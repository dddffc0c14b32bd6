"""Messages on their way into the package `renderers`."""

from collections.abc import Sequence
from typing import Any

from sessions_app.rendering.preparation import ArgumentsForm, ContentForm, prepare_messages
from sessions_app.rendering.protocol import Message


def package_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Plain dictionaries with a content and, where they parse, arguments as objects."""
    prepared = prepare_messages(messages, ArgumentsForm.VALUE, ContentForm.TEXT_PARTS)
    return [{"content": "", **message} for message in prepared]
