"""The acceptance cases that end in samples, told with their own ids (toy tokenizer of the cases)."""

from typing import Any

import numpy as np

from tests.samples.builders import RULES, forest_of, turn
from trainer_export.samples.arguments import SamplesArguments
from trainer_export.samples.hooks import resolve_hooks
from trainer_export.samples.native import SessionRows, session_rows
from trainer_export.samples.payload import samples_payload
from trainer_export.samples.values import CutContinuation

OPEN, CLOSE, NEWLINE, USER, ASSISTANT, TOOL = 1, 2, 3, 5, 6, 7
AB, HELLO, OK = 100, 101, 102
GENERATE = [OPEN, ASSISTANT, NEWLINE]
ASK = {"request_digest": b"first"}


def message(role: int, text: int) -> list[int]:
    return [OPEN, role, NEWLINE, text, CLOSE, NEWLINE]


def first_turn(seq: int, completion: list[int], **fields: Any) -> Any:
    return turn(seq, None, [*message(USER, HELLO), *GENERATE], completion, **fields)


def next_turn(seq: int, parent: int, role: int, text: int, completion: list[int], **fields: Any) -> Any:
    return turn(seq, parent, [NEWLINE, *message(role, text), *GENERATE], completion, **fields)


def exported(*turns: Any, picker: str = "drop_superseded") -> SessionRows:
    return session_rows(forest_of(*turns), resolve_hooks(picker, "default"), RULES)


def test_case_01_the_unread_first_attempt_is_reported_as_superseded():
    result = exported(
        first_turn(0, [1097, 1098, CLOSE], **ASK),
        first_turn(1, [HELLO, CLOSE], **ASK),
        next_turn(2, 1, USER, OK, [OK, CLOSE]),
    )
    assert [row.path for row in result.rows] == [(1, 2)]
    assert [(gone.leaf, gone.reason, gone.superseded_by) for gone in result.report.dropped] == [
        (0, "superseded", 1)
    ]


def test_case_06_the_newline_lost_at_the_boundary_is_there_and_masked():
    result = exported(first_turn(0, [10, OK, 11, CLOSE]), next_turn(1, 0, TOOL, AB, [OK, CLOSE]))
    (row,) = result.rows
    assert row.tokens[:13].tolist() == [1, 5, 3, 101, 2, 3, 1, 6, 3, 10, 102, 11, 2]
    assert row.tokens[13] == NEWLINE
    assert row.loss_mask[13 - (len(row.tokens) - row.response_length)] == 0


def test_case_07_the_sampled_split_is_what_is_trained_with_its_own_logprobs():
    first = first_turn(0, [1097, 1098, CLOSE], logprobs=np.array([-0.5, -0.25, -0.125]))
    second = next_turn(1, 0, USER, OK, [OK, CLOSE], logprobs=np.array([-1.0, -0.5]))
    (row,) = exported(first, second).rows
    assert row.tokens.tolist() == [
        *(1, 5, 3, 101, 2, 3, 1, 6, 3, 1097, 1098, 2, 3, 1, 5, 3, 102, 2, 3, 1, 6, 3, 102, 2),
    ]
    mask = [0] * (len(row.tokens) - row.response_length) + row.loss_mask.tolist()
    assert mask == [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]
    assert row.logprobs[row.loss_mask == 1].tolist() == [-0.5, -0.25, -0.125, -1.0, -0.5]


def test_case_13_a_shared_turn_is_trained_once_by_the_first_leaf():
    turns = [
        first_turn(0, [1097, 1098, CLOSE]),
        next_turn(1, 0, USER, OK, [OK, CLOSE]),
        next_turn(2, 0, USER, AB, [HELLO, CLOSE]),
    ]
    result = exported(*turns)
    assert [row.leaf for row in result.rows] == [1, 2]
    assert [row.trained for row in result.rows] == [5, 2]
    assert result.report.count.trained == 7
    assert result.rows[1].masked == {"trained_elsewhere": 3}
    again = exported(*turns)
    assert [row.loss_mask.tolist() for row in again.rows] == [row.loss_mask.tolist() for row in result.rows]
    assert [row.sample_id for row in again.rows] == [row.sample_id for row in result.rows]


def test_case_14_a_cut_first_attempt_gives_way_to_the_completed_one():
    cut = first_turn(0, [1097, 1098], finish_reason="length", **ASK)
    whole = first_turn(1, [OK, CLOSE], **ASK)
    assert [row.status for row in exported(cut, whole).rows] == ["completed"]
    every = exported(cut, whole, picker="keep_all").rows
    assert [row.status for row in every] == ["truncated", "completed"]


def test_case_14_closing_a_cut_turn_masks_the_glue_and_goes_on():
    cut = first_turn(0, [1097, 1098], finish_reason="length")
    closed = turn(
        1,
        0,
        [CLOSE, NEWLINE, *message(USER, OK), *GENERATE],
        [OK, CLOSE],
        cut_continuation=CutContinuation.CLOSE,
    )
    (row,) = exported(cut, closed).rows
    assert row.status == "completed"
    assert row.stopped_at is None
    assert row.loss_mask[:5].tolist() == [1, 1, 0, 0, 0]
    assert row.loss_mask[-2:].tolist() == [1, 1]
    assert row.trained == 4


def test_case_15_of_a_resampled_request_the_second_reply_is_exported():
    result = exported(first_turn(0, [1097, CLOSE], **ASK), first_turn(1, [OK, CLOSE], **ASK))
    assert [row.leaf for row in result.rows] == [1]


def test_a_turn_that_ends_the_merge_is_told_in_native_rows_and_never_in_the_wire_form():
    turns = [first_turn(0, [AB], finish_reason="abort"), next_turn(1, 0, USER, OK, [OK, CLOSE])]
    (row,) = exported(*turns).rows
    assert (row.stopped_at, row.stopped_reason) == (0, "aborted")
    hooks = resolve_hooks("drop_superseded", "default")
    (sample,) = samples_payload(forest_of(*turns), SamplesArguments(), hooks, RULES).samples
    assert "stopped_at" not in sample.metadata
    assert "stopped_reason" not in sample.metadata
