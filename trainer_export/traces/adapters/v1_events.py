"""Events of a version 1 gateway: `{"triplet_events", "triplets", "final_reward"}`."""

from collections.abc import Mapping
from typing import Any

from trainer_export.traces.adapters.options import read_options
from trainer_export.traces.adapters.registry import EVENTS, adapter
from trainer_export.traces.reference import ValidationError
from trainer_export.traces.rows.v1_events import final_reward, triplet_events, triplets

NAME = "v1.events_to_triplets"


@adapter(NAME, EVENTS)
def convert(source: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """The events of one attempt, as a list or under `events`."""
    read_options(NAME, options, {})
    events = triplet_events(_events(source))
    reward = final_reward(events)
    return {
        "triplet_events": events,
        "triplets": [triplet.to_json() for triplet in triplets(events, reward)],
        "final_reward": reward,
    }


def _events(source: Any) -> list[Mapping[str, Any]]:
    events = source.get("events") if isinstance(source, Mapping) else source
    if not isinstance(events, list) or not all(isinstance(event, Mapping) for event in events):
        raise ValidationError("input: Input should be a list of event objects")
    for position, event in enumerate(events):
        if not isinstance(event.get("data") or {}, Mapping):
            raise ValidationError(f"input[{position}].data: Input should be an object")
    return events
