"""Attributes of a reward span as the reference's emitter writes them, for rewards that come by other ways."""

from collections.abc import Mapping
from typing import Any

from trainer_export.traces.names import REWARD

PRIMARY = "primary"


def reward_attributes(reward: Any, primary_key: str | None = None) -> dict[str, Any]:
    """Flat attributes of one number, or of named numbers with the primary one first."""
    if not isinstance(reward, Mapping):
        if not isinstance(reward, int | float):
            raise TypeError(f"Reward must be a number, got: {type(reward)}")
        return _flat({PRIMARY: float(reward)})
    values = {name: _number(name, value) for name, value in reward.items()}
    if primary_key is None:
        raise ValueError("When emitting a multi-dimensional reward as a dict, primary_key must be provided.")
    if primary_key not in values:
        raise ValueError(f"Primary key '{primary_key}' not found in reward dict keys: {list(values)}")
    return _flat({primary_key: values[primary_key]} | values)


def _number(name: str, value: Any) -> float:
    if not isinstance(value, int | float):
        raise ValueError(f"Reward value must be a number, got: {type(value)} for key {name}")
    return float(value)


def _flat(values: Mapping[str, float]) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    for position, (name, value) in enumerate(values.items()):
        attributes[f"{REWARD}.{position}.name"] = name
        attributes[f"{REWARD}.{position}.value"] = value
    return attributes
