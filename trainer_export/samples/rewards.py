"""The one number that training asks for, out of what was reported.

Rewards of a leaf's own node win over those of the session; several at one place add up, each by its weight.
Rewards of inner nodes belong to single turns and never enter the sample's number.
"""

from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np

from trainer_export.samples.values import Leaf, Reward


def scalar_reward(leaf: Leaf, session_rewards: Sequence[Reward]) -> float | None:
    """The reward of a sample; None where nothing was reported."""
    return total(leaf.last.rewards or session_rewards)


def number_of(reward: Any) -> float | None:
    """A sample's reward as one finite number; None for none, and for what is no number."""
    if not isinstance(reward, int | float | np.integer | np.floating) or isinstance(reward, bool):
        return None
    try:
        return float(reward) if isfinite(reward) else None
    except OverflowError:
        return None


def total(rewards: Sequence[Reward]) -> float | None:
    """Sum of value times weight; None for none."""
    return sum(reward.value * reward.weight for reward in rewards) if rewards else None
