"""Rollouts of version 1 as training rows: `{"rows", "metrics"}`."""

from collections.abc import Mapping
from typing import Any

from trainer_export.traces.adapters.options import read_options
from trainer_export.traces.adapters.registry import EVENTS, adapter
from trainer_export.traces.coercion import to_float, to_int
from trainer_export.traces.reference import ValidationError
from trainer_export.traces.rows.v1_groups import Turn
from trainer_export.traces.rows.v1_rows import Rollout, RowRules, training_rows

NAME = "v1.rollout_rows"

_ALIASES = {
    "trace_aggregator.level": "level",
    "trace_aggregator_level": "level",
    "trajectory_max_prompt_length": "max_prompt_length",
    "trajectory_max_response_length": "max_response_length",
}
_INDEX_NAMES = ("sample_idx_in_step", "index_in_step", "index")
_UNUSED = frozenset({"device", "global_steps", "pad_token_id"})
"""Of the reference's padding and logging; rows here are not padded."""
_DEFAULTS = {
    "level": "trajectory",
    "max_prompt_length": 2048,
    "max_response_length": 8192,
    "reward_fillna_value": 0.0,
}


@adapter(NAME, EVENTS)
def convert(source: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Rollouts as a list or under `rollouts`; a single rollout is taken as it is."""
    named = {_ALIASES.get(name, name): value for name, value in _flat(options).items() if name not in _UNUSED}
    rules = RowRules(**read_options(NAME, named, _DEFAULTS))
    rollouts = [_rollout(item, position) for position, item in enumerate(_rollouts(source))]
    return training_rows(rollouts, rules)


def _flat(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options may stand in a section `trace_aggregator`, as in the reference's configuration."""
    section = options.get("trace_aggregator")
    rest = {name: value for name, value in options.items() if name != "trace_aggregator"}
    return {**(section if isinstance(section, Mapping) else {}), **rest}


def _rollouts(source: Any) -> list[Any]:
    if isinstance(source, Mapping):
        source = source.get("rollouts", [source] if "triplets" in source else None)
    if not isinstance(source, list):
        raise ValidationError("input: Input should be a list of rollouts")
    return source


def _rollout(item: Any, position: int) -> Rollout:
    where = f"input[{position}]"
    if not isinstance(item, Mapping):
        raise ValidationError(f"{where}: Input should be an object")
    reward = item.get("final_reward")
    step = to_int(item.get("step") or 0, f"{where}.step")
    index = to_int(_first_of(item, _INDEX_NAMES) or 0, f"{where}.sample_idx_in_step")
    return Rollout(
        turns=[_turn(triplet) for triplet in item.get("triplets") or ()],
        final_reward=None if reward is None else to_float(reward, f"{where}.final_reward"),
        order=(step, index),
    )


def _first_of(item: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((item[name] for name in names if name in item), None)


def _turn(triplet: Any) -> Turn:
    """`log_probs` may be missing; both id lists may not."""
    response = triplet["response"]
    return Turn(triplet["prompt"]["token_ids"], response["token_ids"], response.get("log_probs"))
