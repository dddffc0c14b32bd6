"""Ownership, metadata, rewards, and training only one agent."""

from typing import Any

import pytest

from tests.samples.builders import RULES, forest_of, turn
from trainer_export.samples.arguments import SamplesArguments
from trainer_export.samples.hooks import resolve_hooks
from trainer_export.samples.payload import samples_payload
from trainer_export.samples.sample import Sample


def rows(
    *turns: Any,
    picker: str = "keep_all",
    postprocessor: str = "default",
    metadata: Any = None,
    limit: int | None = None,
) -> list[Sample]:
    hooks = resolve_hooks(picker, postprocessor)
    return samples_payload(forest_of(*turns), SamplesArguments(limit, metadata), hooks, RULES).samples


FORK = (turn(0, None, [1], [2, 3]), turn(1, 0, [4], [5]), turn(2, 0, [6], [7]))


def test_the_earliest_committed_kept_leaf_owns_what_is_shared():
    first, second = rows(*FORK)
    assert first.loss_mask.tolist() == [1, 1, 0, 1]
    assert second.loss_mask.tolist() == [0, 0, 0, 1]
    assert second.rollout_log_probs.tolist() == [-1.0, -1.001, 0.0, -3.0]


def test_the_owner_is_found_among_kept_leaves_in_whatever_order_they_come():
    (only,) = rows(*FORK, picker="drop_retries")
    assert only.loss_mask.tolist() == [1, 1, 0, 1]
    second, first = rows(*FORK, picker="tests.samples.hook_functions.newest_first")
    assert (first.leaf.last.seq, first.loss_mask.tolist()) == (1, [1, 1, 0, 1])
    assert second.loss_mask.tolist() == [0, 0, 0, 1]


def test_a_row_that_owns_nothing_is_still_a_row():
    first, second = rows(*FORK, limit=3)
    assert first.loss_mask.tolist() == [1, 1]
    assert second.loss_mask.tolist() == [0, 0]


@pytest.mark.parametrize("reward", [1, 0, 0.0, False, "", {"a": 1}, [1]])
def test_any_reward_but_null_is_set_on_every_row(reward: Any):
    for sample in rows(*FORK, metadata={"reward": reward}):
        assert sample.reward == reward
        assert sample.metadata["reward"] == reward


def test_a_null_reward_sets_nothing_and_still_stands_in_the_metadata():
    for sample in rows(*FORK, metadata={"reward": None}):
        assert sample.reward is None
        assert sample.metadata["reward"] is None


def test_the_driver_can_neither_replace_nor_plant_what_the_server_owns():
    planted = {"leaf": 1, "accumulated_token_ids": [9], "tito_session_mismatch": "x", "lifecycle": "mine"}
    for sample in rows(*FORK, metadata=planted):
        assert sample.metadata["leaf"] != 1
        assert len(sample.metadata["accumulated_token_ids"]) > 1
        assert "tito_session_mismatch" not in sample.metadata
        assert sample.metadata["lifecycle"] == "mine"


@pytest.mark.parametrize("metadata", [[], "", 0, False])
def test_falsy_metadata_of_another_type_behaves_as_empty(metadata: Any):
    assert [sample.reward for sample in rows(*FORK, metadata=metadata)] == [None, None]


def agents(*turns: Any, pattern: str) -> list[tuple[int, list[int]]]:
    kept = rows(*turns, postprocessor=f"agent_match:{pattern}", metadata={"x": 1})
    assert all(sample.metadata["x"] == 1 for sample in kept)
    return [(sample.leaf.last.seq, sample.loss_mask.tolist()) for sample in kept]


MIXED = (
    turn(0, None, [1], [2, 3], agent="planner"),
    turn(1, 0, [4], [5], agent="coder"),
    turn(2, None, [6], [7], agent="coder-2"),
    turn(3, None, [8], [9]),
)


def test_agent_match_trains_only_turns_of_the_agent_and_drops_rows_without_any():
    assert agents(*MIXED, pattern="planner") == [(1, [1, 1, 0, 0])]
    assert agents(*MIXED, pattern="coder") == [(1, [0, 0, 0, 1]), (2, [1])]
    assert agents(*MIXED, pattern="^coder$") == [(1, [0, 0, 0, 1])]
    assert agents(*MIXED, pattern="nobody") == []


def test_agent_match_still_trains_shared_turns_once():
    assert agents(*FORK, pattern="") == [(1, [1, 1, 0, 1]), (2, [0, 0, 0, 1])]
