"""Today's form: `agentlightning.reward.N.name` and `.value` on a span of any name; dimension 0 is the
primary one.

Every key that merely starts with the prefix counts as this form, so a look-alike aborts the conversion.
"""

from dataclasses import dataclass
from typing import Any

from trainer_export.traces.attributes import nested_under
from trainer_export.traces.coercion import to_float, to_text
from trainer_export.traces.names import REWARD
from trainer_export.traces.reference import ValidationError
from trainer_export.traces.rewards.form import NOT_THIS_FORM
from trainer_export.traces.span import Span


@dataclass(frozen=True, slots=True)
class RewardDimension:
    """One named value of a reward."""

    name: str
    value: float


def value_of(span: Span) -> Any:
    """The value of the first dimension."""
    found = reward_dimensions(span)
    return found[0].value if found else NOT_THIS_FORM


def reward_dimensions(span: Span) -> list[RewardDimension]:
    """All dimensions in order; [] when the span has none."""
    if not any(key.startswith(REWARD) for key in span.attributes):
        return []
    nested = nested_under(span.attributes, REWARD)
    if not isinstance(nested, list):
        raise ValidationError(f"{REWARD}: Input should be a valid list, got {type(nested).__name__}")
    return [_dimension(item, position) for position, item in enumerate(nested)]


def _dimension(item: Any, position: int) -> RewardDimension:
    where = f"{REWARD}.{position}"
    if not isinstance(item, dict):
        raise ValidationError(f"{where}: Input should be a valid dictionary, got {type(item).__name__}")
    for key in ("name", "value"):
        if key not in item:
            raise ValidationError(f"{where}.{key}: Field required")
    return RewardDimension(to_text(item["name"], f"{where}.name"), to_float(item["value"], f"{where}.value"))
