"""`default`: each completion trains once; the driver's metadata and reward ride on every row."""

from typing import Any

from trainer_export.samples.ownership import own_once
from trainer_export.samples.postprocessors.base import postprocessor
from trainer_export.samples.sample import Sample
from trainer_export.samples.values import JsonObject

SERVER_OWNED = frozenset({"accumulated_token_ids", "tito_session_mismatch", "leaf"})
"""Metadata keys that the driver's metadata can neither replace nor plant."""


@postprocessor("default")
def default_postprocess(samples: list[Sample], session_metadata: JsonObject) -> list[Sample]:
    """The same samples, shared completions masked, metadata and reward set."""
    own_once(samples)
    agent = session_metadata.get("agent") or {}
    reward = agent.get("reward")
    for sample in samples:
        sample.metadata = with_agent(sample.metadata, agent)
        if reward is not None:
            sample.reward = reward
    return samples


def with_agent(metadata: JsonObject, agent: dict[str, Any]) -> JsonObject:
    """Metadata overlaid by the driver's, but for what the server owns."""
    owned = SERVER_OWNED | ({"linear_healer"} & metadata.keys())
    return {**metadata, **{key: value for key, value in agent.items() if key not in owned}}
