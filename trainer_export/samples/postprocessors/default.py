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
    for sample in samples:
        ride_along(sample, agent)
    return samples


def ride_along(sample: Sample, agent: dict[str, Any]) -> None:
    """The driver's metadata over the sample's, but for what the server owns; its reward unless null."""
    reward = agent.get("reward")
    owned = SERVER_OWNED | ({"linear_healer"} & sample.metadata.keys())
    sample.metadata |= {key: value for key, value in agent.items() if key not in owned}
    if reward is not None:
        sample.reward = reward
