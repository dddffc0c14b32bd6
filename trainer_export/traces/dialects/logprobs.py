"""Log probabilities as plain numbers, one per response token, from every dialect that records them."""

import math
from collections.abc import Iterator
from typing import Any

from trainer_export.traces.dialects.bodies import first_choice, response_bodies
from trainer_export.traces.dialects.json_text import loaded
from trainer_export.traces.span import Attributes


def logprobs(attributes: Attributes) -> list[float] | None:
    """The first complete list of finite numbers; None when there is none."""
    for candidate in _candidates(attributes):
        numbers = _numbers(candidate)
        if numbers:
            return numbers
    return None


def _candidates(attributes: Attributes) -> Iterator[Any]:
    yield loaded(attributes.get("logprobs.content"))
    for body in response_bodies(attributes):
        recorded = first_choice(body).get("logprobs")
        if isinstance(recorded, dict):
            yield loaded(recorded.get("content"))
            yield loaded(recorded.get("token_logprobs"))


def _numbers(items: Any) -> list[float] | None:
    if not isinstance(items, list):
        return None
    values: list[Any] = [item.get("logprob") if isinstance(item, dict) else item for item in items]
    if all(isinstance(value, int | float) and math.isfinite(value) for value in values):
        return [float(value) for value in values]
    return None
