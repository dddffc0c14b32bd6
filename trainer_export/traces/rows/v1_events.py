"""Events of a version 1 gateway, trimmed to what training reads, and the triplets among them.

Of all model requests with equal prompt ids only the last is kept, also when it failed; calls without prompt
ids share one key. Invariant: events are never changed, trimmed ones are new.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from trainer_export.traces.rows.v1_responses import trimmed_response
from trainer_export.traces.triplet import Triplet

MODEL_REQUEST = "model_request"
REWARD = "reward"
DEFAULT_ATTEMPT_ID = "0"

Event = Mapping[str, Any]


def triplet_events(events: Sequence[Event]) -> list[dict[str, Any]]:
    """The events as training reads them, in order."""
    trimmed = [_trimmed(event) for event in events]
    last_of_prompt = {
        _prompt_key(event): position
        for position, event in enumerate(trimmed)
        if event.get("event_type") == MODEL_REQUEST
    }
    kept = set(last_of_prompt.values())
    return [
        event
        for position, event in enumerate(trimmed)
        if event.get("event_type") != MODEL_REQUEST or position in kept
    ]


def final_reward(events: Sequence[Event]) -> float | None:
    """The value of the last reward event; booleans and text are no reward."""
    rewards = [event for event in events if event.get("event_type") == REWARD]
    value = rewards[-1]["data"].get("value") if rewards else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def triplets(events: Sequence[Event], reward: float | None) -> list[Triplet]:
    """One per answered model request; the final reward stands on the last one."""
    found = [_triplet(event["data"]) for event in events if _is_answered(event)]
    if found and reward is not None:
        found[-1] = found[-1].with_reward(reward)
    return found


def _trimmed(event: Event) -> dict[str, Any]:
    data = event.get("data") or {}
    if event.get("event_type") == MODEL_REQUEST:
        data = _model_request(data)
    elif event.get("event_type") == REWARD:
        data = {"value": data.get("value")} | {key: data[key] for key in ("source", "reason") if key in data}
    attempt_id = event.get("attempt_id")
    return {**event, "attempt_id": DEFAULT_ATTEMPT_ID if attempt_id is None else attempt_id, "data": data}


def _model_request(data: Mapping[str, Any]) -> dict[str, Any]:
    server = data.get("server", {})
    response = data.get("response")
    trimmed = trimmed_response(response)
    trimmed["server"] = {"model": server.get("model"), "version": server.get("version")}
    trimmed.update({key: data[key] for key in ("http_status", "status") if key in data})
    if isinstance(response, Mapping) and "error" in response:
        trimmed["error"] = response["error"]
    return trimmed


def _prompt_key(event: Event) -> tuple[Any, ...]:
    ids = event["data"]["prompt_token_ids"]
    return tuple(ids) if isinstance(ids, list) else ()


def _is_answered(event: Event) -> bool:
    if event.get("event_type") != MODEL_REQUEST:
        return False
    data = event["data"]
    status = data.get("http_status")
    failed = data.get("status") == "error" or (isinstance(status, int) and status >= 400)
    return not failed and bool(data["response_token_ids"])


def _triplet(data: Mapping[str, Any]) -> Triplet:
    return Triplet(
        prompt={"token_ids": data["prompt_token_ids"]},
        response={"token_ids": data["response_token_ids"], "log_probs": data["response_log_probs"]},
        reward=None,
        metadata={"server": data["server"]},
    )
