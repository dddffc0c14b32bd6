"""The conversation a span belongs to: joins a call to its agent where time alone is ambiguous."""

from trainer_export.traces.attributes import first_text
from trainer_export.traces.span import Attributes

_NAMES = ("gen_ai.conversation.id", "session.id", "traceloop.association.properties.session_id", "thread_id")


def conversation_id(attributes: Attributes) -> str | None:
    """None when the dialect has none."""
    return first_text(attributes, _NAMES)
