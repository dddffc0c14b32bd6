"""Why a turn does not continue the one before, in the three classes of version 0.3."""

import pytest

from trainer_export.traces.rows.final_reward import final_reward
from trainer_export.traces.rows.mismatch import Mismatch, classify
from trainer_export.traces.triplet import Triplet


class Letters:
    """Ids below 10 are special; 10 is "a", 11 is "b", 12 is "ab"."""

    special_ids = frozenset(range(10))
    _texts = {10: "a", 11: "b", 12: "ab"}

    def text(self, ids):
        return "".join(self._texts.get(token, "") for token in ids)


def test_a_continuation_is_no_mismatch():
    assert classify([1, 10, 2], [1, 10], Letters()) is None
    assert classify([1], [], Letters()) is None


@pytest.mark.parametrize(
    ("ids", "context", "expected"),
    [
        ([1, 10], [2, 10], Mismatch(True, False, False, 0)),
        ([1, 12, 2], [1, 10, 11], Mismatch(False, True, False, 1)),
        ([1, 11], [1, 10], Mismatch(False, False, True, 1)),
        ([2, 12], [1, 10, 11], Mismatch(True, True, False, 0)),
        ([10], [1, 10], Mismatch(False, False, False, 0)),
        ([10], [10, 11], Mismatch(False, False, True, 1)),
    ],
)
def test_classes_and_the_first_token_that_differs(ids, context, expected):
    assert classify(ids, context, Letters()) == expected


def triplet(reward):
    return Triplet({"token_ids": [1]}, {"token_ids": [2]}, reward, {})


def test_final_reward_is_the_last_one_given():
    assert final_reward("ro", [triplet(1.0), triplet(0.0), triplet(None)], None) == 0.0
    assert final_reward("ro", [triplet(None)], 0.5) == 0.5
    with pytest.raises(
        ValueError, match=r"^Reward is None for rollout ro, please check the reward function\.$"
    ):
        final_reward("ro", [], None)
