"""The one number that training asks for, out of what was reported.

Rewards of a leaf's own node win over those of the session; several at one place add up, each by its weight.
Rewards of inner nodes belong to single turns and never enter the sample's number.
"""

from collections.abc import Sequence

from trainer_export.samples.values import Leaf, Reward


def scalar_reward(leaf: Leaf, session_rewards: Sequence[Reward]) -> float | None:
    """The reward of a sample; None where nothing was reported."""
    return total(leaf.last.rewards or session_rewards)


def total(rewards: Sequence[Reward]) -> float | None:
    """Sum of value times weight; None for none."""
    return sum(reward.value * reward.weight for reward in rewards) if rewards else None
