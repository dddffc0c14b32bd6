"""The reward of a rollout."""

import pytest

from trainer_export.traces.rows.final_reward import final_reward
from trainer_export.traces.triplet import Triplet


def triplet(reward):
    return Triplet({"token_ids": [1]}, {"token_ids": [2]}, reward, {})


def test_final_reward_is_the_last_one_given():
    assert final_reward("ro", [triplet(1.0), triplet(0.0), triplet(None)], None) == 0.0
    assert final_reward("ro", [triplet(None)], 0.5) == 0.5
    with pytest.raises(
        ValueError, match=r"^Reward is None for rollout ro, please check the reward function\.$"
    ):
        final_reward("ro", [], None)
