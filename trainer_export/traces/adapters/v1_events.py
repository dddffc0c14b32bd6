"""Events of a version 1 gateway: `{"triplet_events", "triplets", "final_reward"}`."""

from collections.abc import Mapping
from typing import Any

from trainer_export.traces.adapters.options import read_options
from trainer_export.traces.adapters.registry import EVENTS, adapter
from trainer_export.traces.reference import ValidationError
from trainer_export.traces.rows.v1_events import (
    DEFAULT_ATTEMPT_ID,
    final_reward,
    triplet_events,
    triplets,
)

NAME = "v1.events_to_triplets"


_DEFAULTS = {"attempt_id": None}


@adapter(NAME, EVENTS)
def convert(source: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Events as a list, or under `events` with the attempt to read under `last_attempt_id`."""
    chosen = read_options(NAME, options, _DEFAULTS)
    wanted = chosen["attempt_id"]
    if wanted is None and isinstance(source, Mapping):
        wanted = source.get("last_attempt_id")
    events = triplet_events(_of_attempt(_events(source), wanted))
    reward = final_reward(events)
    return {
        "triplet_events": events,
        "triplets": [triplet.to_json() for triplet in triplets(events, reward)],
        "final_reward": reward,
    }


def _of_attempt(events: list[Mapping[str, Any]], attempt_id: Any) -> list[Mapping[str, Any]]:
    """All events when no attempt is named."""
    if attempt_id is None:
        return events
    return [event for event in events if event.get("attempt_id", DEFAULT_ATTEMPT_ID) == attempt_id]


def _events(source: Any) -> list[Mapping[str, Any]]:
    events = source.get("events") if isinstance(source, Mapping) else source
    if not isinstance(events, list) or not all(isinstance(event, Mapping) for event in events):
        raise ValidationError("input: Input should be a list of event objects")
    for position, event in enumerate(events):
        if not isinstance(event.get("data") or {}, Mapping):
            raise ValidationError(f"input[{position}].data: Input should be an object")
    return events
