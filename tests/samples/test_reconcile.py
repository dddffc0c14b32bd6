"""Un-healed chains: fork by default, realign where the threshold allows, trained ids always in their own
context."""

import logging
from dataclasses import replace
from typing import Any

import pytest

from tests.samples.builders import RULES, forest_of, turn
from trainer_export.samples.hooks import resolve_hooks
from trainer_export.samples.native import SessionRows, session_rows
from trainer_export.samples.reconcile import reconcile
from trainer_export.samples.values import SessionForest

HOOKS = resolve_hooks("keep_all", "default")


def unhealed(*turns: Any) -> SessionForest:
    return replace(forest_of(*turns, policy="linear"), healed=False)


def rows(forest: SessionForest, threshold: int | None) -> SessionRows:
    result = session_rows(forest, HOOKS, RULES, fork_threshold_tokens=threshold)
    count = result.report.count
    assert count.generated == count.trained + sum(count.masked.values())
    assert count.generated == sum(item.completion.size for item in forest.turns)
    return result


def shown(result: SessionRows) -> list[tuple[list[int], list[int]]]:
    return [(row.tokens.tolist(), row.loss_mask.tolist()) for row in result.rows]


FIRST = turn(0, None, [1, 2], [30, 31, 32])
RESPELLED = turn(1, None, [1, 2, 33, 32, 5], [6, 7], continues=0)
"""The first reply came back as [33, 32]."""


@pytest.mark.parametrize("threshold", [None, 0, -1, 2])
def test_a_drifted_turn_starts_a_row_of_its_own(threshold: int | None):
    assert shown(rows(unhealed(FIRST, RESPELLED), threshold)) == [
        ([1, 2, 30, 31, 32], [1, 1, 1]),
        ([1, 2, 33, 32, 5, 6, 7], [1, 1]),
    ]


def test_realigning_gives_up_the_last_response_only():
    result = rows(unhealed(FIRST, RESPELLED), 3)
    assert shown(result) == [([1, 2, 33, 32, 5, 6, 7], [0, 0, 0, 1, 1])]
    assert result.rows[0].masked == {"realigned": 3}
    assert [part.kept for part in result.rows[0].turns] == [0, 2]


def test_a_response_that_came_back_partly_equal_is_given_up_as_a_whole():
    respelled = turn(1, None, [1, 2, 30, 99, 5], [6], continues=0)
    assert shown(rows(unhealed(FIRST, respelled), 1024)) == [([1, 2, 30, 99, 5, 6], [0, 0, 0, 1])]


def test_the_threshold_measures_the_new_completion():
    forest = unhealed(FIRST, RESPELLED)
    assert len(rows(forest, 2).rows) == 2
    assert len(rows(forest, 3).rows) == 1


def test_drift_before_the_last_response_forks():
    earlier = turn(1, None, [1, 9, 30, 31, 32, 5], [6], continues=0)
    assert len(rows(unhealed(FIRST, earlier), 1024).rows) == 2


def test_a_prompt_that_ends_where_the_response_began_forks():
    shorter = turn(1, None, [1, 2], [6], continues=0)
    assert len(rows(unhealed(FIRST, shorter), 1024).rows) == 2


def test_earlier_responses_stay_trained_and_the_chain_goes_on():
    turns = [
        turn(0, None, [1], [2, 3]),
        turn(1, 0, [4], [50, 51]),
        turn(2, None, [1, 2, 3, 4, 59, 6], [7], continues=1),
        turn(3, 2, [8], [9]),
        turn(4, None, [1, 2, 3, 4, 59, 6, 7, 8, 99, 10], [11], continues=3),
    ]
    assert shown(rows(unhealed(*turns), 1024)) == [
        ([1, 2, 3, 4, 59, 6, 7, 8, 99, 10, 11], [1, 1, 0, 0, 0, 1, 0, 0, 0, 1]),
    ]


def test_a_cut_response_that_is_given_up_does_not_end_the_row():
    cut = turn(0, None, [1, 2], [30, 31], finish_reason="length")
    respelled = turn(1, None, [1, 2, 33, 5], [6], continues=0)
    (row,) = rows(unhealed(cut, respelled), 1024).rows
    assert (row.loss_mask.tolist(), row.status, row.stopped_at) == ([0, 0, 1], "completed", None)


def test_two_continuations_of_one_turn_share_what_is_before_it():
    turns = [
        turn(0, None, [1], [2]),
        turn(1, 0, [3], [40]),
        turn(2, None, [1, 2, 3, 41, 5], [6], continues=1),
        turn(3, 1, [7], [8]),
    ]
    assert shown(rows(unhealed(*turns), 1024)) == [
        ([1, 2, 3, 41, 5, 6], [1, 0, 0, 0, 1]),
        ([1, 2, 3, 40, 7, 8], [0, 0, 1, 0, 1]),
    ]


def test_a_healed_session_is_left_alone_with_a_warning(caplog: pytest.LogCaptureFixture):
    forest = replace(unhealed(FIRST, RESPELLED), healed=True)
    with caplog.at_level(logging.WARNING):
        assert reconcile(forest, 1024) is forest
    assert "fork_threshold_tokens has no effect" in caplog.text


def test_forking_is_silent(caplog: pytest.LogCaptureFixture):
    forest = forest_of(FIRST)
    assert reconcile(forest, None) is forest
    assert not caplog.records
