"""Short ways to write spans down."""

from typing import Any

from trainer_export.traces.answers import answer

CALL = "openai.chat.completion"
REWARD = "agentlightning.annotation"
REWARD_NAME = "agentlightning.reward.0.name"
REWARD_VALUE = "agentlightning.reward.0.value"


def span(
    span_id: str,
    parent: str | None = None,
    start: float | None = 0.0,
    end: float | None = None,
    name: str = "work",
    sequence: int = 0,
    **attributes: Any,
) -> dict[str, Any]:
    """A span object; keyword `gen_ai__response__id` is the attribute `gen_ai.response.id`."""
    return {
        "rollout_id": "ro",
        "attempt_id": "at",
        "sequence_id": sequence,
        "trace_id": "t" * 32,
        "span_id": span_id,
        "parent_id": parent,
        "name": name,
        "status": {"status_code": "OK"},
        "attributes": {key.replace("__", "."): value for key, value in attributes.items()},
        "start_time": _seconds(start),
        "end_time": _seconds(start if end is None else end),
    }


def _seconds(time: float | None) -> float | None:
    """Whole numbers would be read as nanoseconds."""
    return None if time is None else float(time)


def session(end: float = 100.0, span_id: str = "s") -> dict[str, Any]:
    """The usual root."""
    return span(span_id, None, 0.0, end, "session")


def agent(span_id: str, parent: str | None, start: float, end: float, name: str) -> dict[str, Any]:
    """A span of an agent."""
    made = span(span_id, parent, start, end, "Agent run")
    made["attributes"]["agent.name"] = name
    return made


def call(span_id: str, parent: str | None, start: float, end: float, **changes: Any) -> dict[str, Any]:
    """A call with ids made from its name, so that two calls differ."""
    made = span(span_id, parent, start, end, CALL)
    made["attributes"] = {
        "gen_ai.response.id": f"chatcmpl-{span_id}",
        "prompt_token_ids": [len(span_id)],
        "response_token_ids": [ord(span_id[-1])],
    } | changes.pop("attributes", {})
    return made | changes


def reward(
    span_id: str, parent: str | None, start: float, value: Any, end: float | None = None
) -> dict[str, Any]:
    """A reward in today's form."""
    made = span(span_id, parent, start, end, REWARD)
    made["attributes"] = {REWARD_NAME: "primary", REWARD_VALUE: value}
    return made


def triplets(spans: list[dict[str, Any]], adapter: str = "TracerTraceToTriplet", **options: Any) -> Any:
    """What the command prints for one request."""
    return answer(adapter, options, spans)


def rewards(spans: list[dict[str, Any]], **options: Any) -> dict[str, Any]:
    """Reward by response id."""
    return {item["metadata"]["response_id"]: item["reward"] for item in triplets(spans, **options)}


def response_ids(spans: list[dict[str, Any]], **options: Any) -> list[str | None]:
    """The calls selected, in output order."""
    return [item["metadata"]["response_id"] for item in triplets(spans, **options)]
