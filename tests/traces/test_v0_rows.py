"""Rows of version 0.3, defects included."""

from trainer_export.traces.rows.v0_rows import Limits, trajectory_rows, transition_rows
from trainer_export.traces.triplet import Triplet

WIDE = Limits(100, 100)


def turns(*pairs):
    return [Triplet({"token_ids": list(p)}, {"token_ids": list(r)}, None, {}) for p, r in pairs]


def test_transition_is_a_row_a_turn_cut_and_marked():
    rows = transition_rows(turns(([1, 2, 3], [4, 5]), ([1], [2])), 1.0, Limits(2, 1))
    assert rows == [
        {"prompt_ids": [1, 2], "response_ids": [4], "is_drop": True, "reward": 1.0, "turn_index": 0},
        {"prompt_ids": [1], "response_ids": [2], "is_drop": False, "reward": 1.0, "turn_index": 1},
    ]


def test_turns_that_continue_are_merged():
    assert trajectory_rows(turns(([1], [2]), ([1, 2, 3], [4])), 0.5, WIDE) == [
        {
            "prompt_ids": [1],
            "response_ids": [2, 3, 4],
            "is_drop": False,
            "reward": 0.5,
            "loss_mask": [1, 0, 1],
        }
    ]


def test_a_break_starts_a_new_row():
    rows = trajectory_rows(turns(([1], [2]), ([7], [8])), 0.5, WIDE)
    assert [row["prompt_ids"] for row in rows] == [[1], [7]]


def test_prompt_and_response_together_are_compared():
    """The second prompt is shorter than the context: nothing is observed, and the slice goes wrong."""
    row = trajectory_rows(turns(([1], [2, 3]), ([1, 2], [3, 4])), 0.5, WIDE)[0]
    assert (row["response_ids"], row["loss_mask"]) == ([2, 3, 2, 3, 4], [1, 1, 1, 1])


def test_no_observation_takes_the_whole_prompt():
    row = trajectory_rows(turns(([1], [2]), ([1, 2], [3])), 0.5, WIDE)[0]
    assert (row["response_ids"], row["loss_mask"]) == ([2, 1, 2, 3], [1, 1])


def test_overflow_of_a_later_prompt_is_trained_and_makes_the_mask_too_long():
    row = trajectory_rows(turns(([1], [2]), ([7, 8, 9], [5])), 0.5, Limits(2, 100))[1]
    assert (row["prompt_ids"], row["response_ids"], row["loss_mask"]) == ([7, 8], [9, 5], [1, 1, 1])
