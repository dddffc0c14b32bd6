"""Training rows of version 1."""

import copy

import pytest

from trainer_export.traces.answers import answer


def turn(prompt, response, log_probs=None):
    return {"prompt": {"token_ids": prompt}, "response": {"token_ids": response, "log_probs": log_probs}}


def rollout(*turns, reward=1.0, **fields):
    return {"rollout_id": "ro", "data_id": "d", "final_reward": reward, "triplets": list(turns)} | fields


def rows(*rollouts, **options):
    return answer("v1.rollout_rows", options, list(rollouts))


def test_a_continued_prompt_is_one_row():
    result = rows(rollout(turn([1], [2, 3], [-1.0, -2.0]), turn([1, 2, 3, 9], [4], [-3.0])))
    assert result["rows"] == [
        {
            "prompt_ids": [1],
            "response_ids": [2, 3, 9, 4],
            "loss_mask": [1, 1, 0, 1],
            "log_probs": [-1.0, -2.0, 0.0, -3.0],
            "is_drop": False,
            "reward_position": 3,
            "reward": 1.0,
        }
    ]
    assert result["metrics"] == {
        "training/n_sample": 1,
        "training/n_truncated_sample": 0,
        "training/n_skipped_empty_rows": 0,
        "training/n_turns": 2,
        "training/n_unmerged_rollouts": 0,
        "training/n_trace_merge_mismatch_rows": 0,
    }


def test_only_the_turn_before_is_tried():
    result = rows(rollout(turn([1], [2]), turn([7], [8]), turn([1, 2, 3], [4])))
    assert [row["prompt_ids"] for row in result["rows"]] == [[1], [7], [1, 2, 3]]
    assert result["metrics"]["training/n_unmerged_rollouts"] == 1
    assert result["metrics"]["training/n_trace_merge_mismatch_rows"] == 2


def test_the_prompt_alone_has_to_start_with_the_context():
    assert len(rows(rollout(turn([1], [2, 3]), turn([1, 2], [3, 4])))["rows"]) == 2


@pytest.mark.parametrize("second", [None, [-1.0, -2.0]])
def test_unusable_log_probabilities_of_one_turn_cost_the_group_its_own(second):
    result = rows(rollout(turn([1], [2], [-1.0]), turn([1, 2], [3], second)))
    assert result["rows"][0]["log_probs"] is None


def test_one_row_without_log_probabilities_takes_them_from_all():
    result = rows(rollout(turn([1], [2], [-1.0])), rollout(turn([1], [2])))
    assert [row["log_probs"] for row in result["rows"]] == [None, None]


def test_long_prompts_are_cut_and_marked():
    row = rows(rollout(turn([1, 2, 3], [4])), max_prompt_length=2)["rows"][0]
    assert (row["prompt_ids"], row["is_drop"]) == ([1, 2], True)


def test_long_responses_are_cut_and_counted():
    result = rows(rollout(turn([1], [2, 3, 4], [-1.0, -2.0, -3.0])), max_response_length=2)
    row = result["rows"][0]
    assert (row["response_ids"], row["loss_mask"], row["log_probs"]) == ([2, 3], [1, 1], [-1.0, -2.0])
    assert row["reward_position"] == 1
    assert result["metrics"]["training/n_truncated_sample"] == 1


def test_rows_without_a_trained_token_are_skipped():
    result = rows(rollout(turn([1], []), turn([9], [2])))
    assert [row["prompt_ids"] for row in result["rows"]] == [[9]]
    assert result["metrics"]["training/n_skipped_empty_rows"] == 1


def test_no_final_reward():
    row = rows(rollout(turn([1], [2]), reward=None))["rows"][0]
    assert (row["reward"], row["reward_position"]) == (0.0, None)


def test_transition_is_a_row_a_turn():
    result = rows(rollout(turn([1], [2]), turn([1, 2], [3]), reward=0.5), level="transition")
    assert result["rows"] == [
        {
            "prompt_ids": prompt,
            "response_ids": response,
            "log_probs": None,
            "is_drop": False,
            "reward_position": 0,
            "reward": 0.5,
            "turn_index": index,
        }
        for index, (prompt, response) in enumerate([([1], [2]), ([1, 2], [3])])
    ]
    assert set(result["metrics"]) == {
        "training/n_sample",
        "training/n_truncated_sample",
        "training/n_skipped_empty_rows",
        "training/n_turns",
    }


def test_rollouts_go_by_step_and_index():
    result = rows(
        rollout(turn([3], [3]), step=2, sample_idx_in_step=0),
        rollout(turn([2], [2]), step=1, sample_idx_in_step=1),
        rollout(turn([1], [1]), step=1, sample_idx_in_step=0),
    )
    assert [row["prompt_ids"] for row in result["rows"]] == [[1], [2], [3]]


@pytest.mark.parametrize("name", ["level", "trace_aggregator_level", "trace_aggregator.level"])
def test_bad_level(name):
    assert rows(rollout(turn([1], [2])), **{name: "token"})["error"] == {
        "type": "ValueError",
        "message": "Unknown trace_aggregator_level: token",
    }


def test_nothing_left():
    assert rows(rollout(), rollout(turn([1], [])))["error"] == {
        "type": "RuntimeError",
        "message": "get_train_data_batch emitted zero training rows.",
    }


def test_converting_again_gives_the_same():
    source = [rollout(turn([1], [2], [-1.0]), turn([1, 2, 3], [4], [-2.0]))]
    before = copy.deepcopy(source)
    assert answer("v1.rollout_rows", {}, source) == answer("v1.rollout_rows", {}, source)
    assert source == before
