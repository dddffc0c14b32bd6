"""One reward for a whole rollout, as version 0.3 trains: the last reward of its triplets that is not None."""

from collections.abc import Iterable, Sequence
from typing import Any

from trainer_export.traces.triplet import Triplet


def final_reward(rollout_id: str, triplets: Sequence[Triplet], fill: float | None) -> Any:
    """Searched from the end; `fill` where there is none, an error when that is None too."""
    found = _last(triplet.reward for triplet in triplets)
    if found is not None:
        return found
    if fill is None:
        raise ValueError(f"Reward is None for rollout {rollout_id}, please check the reward function.")
    return fill


def _last(rewards: Iterable[Any]) -> Any:
    found = None
    for reward in rewards:
        found = found if reward is None else reward
    return found
