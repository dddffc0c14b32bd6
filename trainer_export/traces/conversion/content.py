"""Raw messages of a call, nested as recorded; None when no candidate prefix has anything."""

from trainer_export.traces.attributes import Nested, first_nested
from trainer_export.traces.names import OPERATION_INPUT, OPERATION_OUTPUT
from trainer_export.traces.span import Attributes

_PROMPT = ("gen_ai.prompt", f"{OPERATION_INPUT}.messages")
_RESPONSE = ("gen_ai.completion", f"{OPERATION_OUTPUT}.choices")


def prompt_content(attributes: Attributes) -> Nested | None:
    """The messages sent."""
    return first_nested(attributes, _PROMPT)


def response_content(attributes: Attributes) -> Nested | None:
    """The messages received."""
    return first_nested(attributes, _RESPONSE)
