"""The id of a response: the key that joins spans of one call, and spans with calls that we served."""

from trainer_export.traces.attributes import first_text
from trainer_export.traces.dialects.bodies import response_bodies
from trainer_export.traces.names import RESPONSE_ID
from trainer_export.traces.span import Attributes


def response_id(attributes: Attributes) -> str | None:
    """None when no dialect has one; an empty text is none."""
    found = first_text(attributes, RESPONSE_ID)
    if found:
        return found
    for body in response_bodies(attributes):
        value = body.get("id")
        if isinstance(value, str) and value:
            return value
    return None
