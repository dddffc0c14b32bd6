"""Rewards of one attempt: every recorded form, all dimensions, and the call they name where they name one."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainer_export.traces.attributes import unflatten
from trainer_export.traces.better.distinct import original_id
from trainer_export.traces.coercion import to_float
from trainer_export.traces.names import LINK, OPERATION, OPERATION_NAME, REWARD
from trainer_export.traces.reference import ValidationError
from trainer_export.traces.rewards import reward_value
from trainer_export.traces.rewards.dimensions import reward_dimensions
from trainer_export.traces.span import Attributes, Span

EVALUATION_EVENT = "gen_ai.evaluation.result"
PRIMARY = "primary"

_EVALUATION = "gen_ai.evaluation."
_SCORE = f"{_EVALUATION}score.value"
_RESERVED = ("trace_id", "span_id")


@dataclass(frozen=True, slots=True)
class RewardFacts:
    """One emission of a reward."""

    span: Span
    """The span it was recorded on; for a span event the span that has the event."""
    values: tuple[tuple[str, float], ...]
    """Named dimensions, the primary one first."""
    links: Mapping[str, str]
    """Conditions its call has to meet: attribute name, `span_id` or `trace_id` -> value; {} when it names
    no call.
    """
    at: float | None
    """When it was given."""


def rewards_of(span: Span) -> list[RewardFacts]:
    """All emissions on one span. Raises ValidationError for a form that is malformed."""
    found = [*_forms(span), *_evaluation(span, span.attributes, span.start_time)]
    for event in span.events:
        attributes = event.get("attributes")
        if event.get("name") == EVALUATION_EVENT and isinstance(attributes, Mapping):
            found += _evaluation(span, attributes, _time_of(event, span.end_time), of_its_span=True)
    return found


def is_reward_operation(span: Span) -> bool:
    """Marked as a reward although it carries no value."""
    return span.name == OPERATION and span.attributes.get(OPERATION_NAME) == REWARD


def _forms(span: Span) -> Iterator[RewardFacts]:
    """The reference's three forms; keys that merely look alike are no reward."""
    attributes = {key: value for key, value in span.attributes.items() if not _looks_alike(key)}
    plain = Span(span.span_id, None, span.name, attributes, span.start_time, span.end_time)
    try:
        values = [(item.name, item.value) for item in reward_dimensions(plain)]
        if not values:
            single = reward_value(plain)
            values = [] if single is None else [(PRIMARY, to_float(single, "reward"))]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValidationError(str(error)) from error
    if not all(math.isfinite(value) for _, value in values):
        raise ValidationError("reward: Input should be a finite number")
    if values:
        yield RewardFacts(span, tuple(values), _links(span.attributes), span.start_time)


def _looks_alike(key: str) -> bool:
    return key.startswith(REWARD) and not key.startswith(REWARD + ".")


def _evaluation(
    span: Span, attributes: Attributes | Mapping[str, Any], at: float | None, *, of_its_span: bool = False
) -> Iterator[RewardFacts]:
    score = attributes.get(_SCORE)
    if score is None:
        return
    name = attributes.get(f"{_EVALUATION}name")
    response_id = attributes.get("gen_ai.response.id")
    links: dict[str, str] = {}
    if isinstance(response_id, str) and response_id:
        links["gen_ai.response.id"] = response_id
    elif of_its_span:
        links["span_id"] = span.span_id
    value = to_float(score, _SCORE)
    if not math.isfinite(value):
        raise ValidationError(f"{_SCORE}: Input should be a finite number")
    named = name if isinstance(name, str) and name else PRIMARY
    yield RewardFacts(span, ((named, value),), links, at)


def _links(attributes: Attributes) -> dict[str, str]:
    """`agentlightning.link.N.key_match` and `.value_match`."""
    start = LINK + "."
    flat = {key[len(start) :]: value for key, value in attributes.items() if key.startswith(start)}
    nested = unflatten(flat)
    items = nested if isinstance(nested, list) else [nested[key] for key in sorted(nested)]
    pairs = [(item.get("key_match"), item.get("value_match")) for item in items if isinstance(item, dict)]
    return {key: str(value) for key, value in pairs if isinstance(key, str) and value is not None}


def _time_of(event: Mapping[str, Any], default: float | None) -> float | None:
    value = event.get("timestamp", event.get("time"))
    return float(value) if isinstance(value, int | float) else default


def meets(links: Mapping[str, str], span: Span) -> bool:
    """Whether a span meets every condition."""
    own = {"span_id": (span.span_id, original_id(span.span_id)), "trace_id": (span.trace_id,)}
    return all(
        value in own[key] if key in _RESERVED else str(span.attributes.get(key)) == value
        for key, value in links.items()
    )
