"""Each rollout counts once, whatever became of it and in whatever order its rows come."""

import math
import random
from dataclasses import replace

from tests.samples.builders import RULES, forest_of, turn
from trainer_export.samples.hooks import resolve_hooks
from trainer_export.samples.native import session_rows
from trainer_export.samples.rows import SampleRow
from trainer_export.samples.values import Reward
from trainer_export.samples.weights import weigh


def rows(session: str, leaves: int, reward: float, rollout: str | None = None) -> list[SampleRow]:
    turns = [turn(seq, None, [1], [2]) for seq in range(leaves)]
    forest = replace(
        forest_of(*turns, rewards=(Reward("reward", reward),), group_id="g1", rollout_id=rollout),
        session_id=session * 32,
    )
    return session_rows(forest, resolve_hooks("keep_all", "default"), RULES).rows


def test_a_forked_rollout_weighs_as_much_as_a_linear_one():
    weighed = weigh([*rows("a", 2, 1.0), *rows("b", 1, 0.5)])
    assert [(row.rollout_id[0], row.leaf_index, row.leaf_count) for row in weighed] == [
        ("a", 0, 2),
        ("a", 1, 2),
        ("b", 0, 1),
    ]
    assert sum(row.rollout_weight for row in weighed if row.rollout_id[0] == "a") == 1.0
    total = sum(row.rollout_weight for row in weighed)
    assert sum(row.rollout_weight * row.reward for row in weighed) / total == 0.75


def test_attempts_of_one_rollout_share_its_weight():
    weighed = weigh([*rows("a", 2, 1.0, "r"), *rows("b", 1, 0.5, "r")])
    assert [(row.leaf_index, row.leaf_count, row.rollout_weight) for row in weighed] == [
        (0, 3, 1 / 3),
        (1, 3, 1 / 3),
        (2, 3, 1 / 3),
    ]


def test_the_order_of_the_rows_does_not_matter():
    together = [*rows("c", 3, 1.0, "r"), *rows("a", 4, 1.0, "r"), *rows("b", 5, 1.0)]
    straight = {row.sample_id: row for row in weigh(together)}
    for seed in range(5):
        shuffled = random.Random(seed).sample(together, len(together))
        weighed = weigh(shuffled)
        assert [row.sample_id for row in weighed] == [row.sample_id for row in shuffled]
        for row in weighed:
            same = straight[row.sample_id]
            assert (row.leaf_index, row.leaf_count) == (same.leaf_index, same.leaf_count)
    assert math.isclose(sum(row.rollout_weight for row in straight.values()), 2.0)


def test_no_rows_weigh_nothing():
    assert weigh([]) == []
