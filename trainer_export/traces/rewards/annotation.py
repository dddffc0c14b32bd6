"""The form of version 0.2: attribute `reward` of an annotation span."""

from typing import Any

from trainer_export.traces.names import ANNOTATION
from trainer_export.traces.rewards.form import NOT_THIS_FORM
from trainer_export.traces.span import Span


def value_of(span: Span) -> Any:
    """The value as recorded, whatever its type."""
    if span.name != ANNOTATION:
        return NOT_THIS_FORM
    return span.attributes.get("reward", NOT_THIS_FORM)
