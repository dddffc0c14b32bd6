"""What cannot be proven is masked and counted, and every generated token is accounted for."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sessions_app.errors import SamplesFailed
from tests.samples.builders import RULES, forest_of, ids, turn
from trainer_export.samples.arguments import SamplesArguments
from trainer_export.samples.hooks import resolve_hooks
from trainer_export.samples.native import SessionRows, session_rows
from trainer_export.samples.postprocessors.base import Postprocessor
from trainer_export.samples.values import SessionForest

HOOKS = resolve_hooks("keep_all", "default")


def made(
    forest: SessionForest,
    change: Postprocessor | None = None,
    picker: str = "keep_all",
    limit: int | None = None,
    **rules: Any,
) -> SessionRows:
    """The rows of a session, changed by a post-processor of the test after the default one."""
    hooks = resolve_hooks(picker, "default")
    if change is not None:
        done = hooks.postprocessor
        hooks = replace(hooks, postprocessor=lambda samples, meta: change(done(samples, meta), meta))
    return session_rows(forest, hooks, replace(RULES, **rules), SamplesArguments(limit))


def masks(result: SessionRows) -> list[list[int]]:
    return [row.loss_mask.tolist() for row in result.rows]


def assert_adds_up(result: SessionRows, forest: SessionForest) -> None:
    for count in (*result.rows, result.report.count):
        assert count.generated == count.trained + sum(count.masked.values())
    assert result.report.count.generated == sum(item.completion.size for item in forest.turns)
    assert result.report.count.trained == sum(row.trained for row in result.rows)
    for row in result.rows:
        assert row.trained == np.count_nonzero(row.loss_mask) == sum(part.trained for part in row.turns)


CHAIN = (turn(0, None, [1], [2, 3]), turn(1, 0, [4], [5, 6]))
FORK = (turn(0, None, [1], [2, 3]), turn(1, 0, [4], [5]), turn(2, 0, [6], [7]))


def test_an_honest_session_is_proven_in_full():
    forest = forest_of(*CHAIN)
    result = made(forest)
    assert masks(result) == [[1, 1, 0, 1, 1]]
    assert (result.rows[0].generated, result.rows[0].trained, result.rows[0].masked) == (4, 4, {})
    assert_adds_up(result, forest)


def test_a_shared_completion_is_counted_as_trained_elsewhere():
    forest = forest_of(*FORK)
    result = made(forest)
    assert masks(result) == [[1, 1, 0, 1], [0, 0, 0, 1]]
    assert [row.masked for row in result.rows] == [{}, {"trained_elsewhere": 2}]
    assert (result.report.count.trained, result.report.count.masked) == (4, {})
    assert_adds_up(result, forest)


def test_what_two_rows_would_train_is_trained_in_the_earliest_leaf_only():
    forest = forest_of(*FORK)

    def train_all(samples: Any, meta: Any) -> Any:
        for sample in samples:
            sample.loss_mask[[0, 1, 3]] = 1
        return samples[::-1]

    result = made(forest, train_all)
    assert [row.leaf for row in result.rows] == [2, 1]
    assert masks(result) == [[0, 0, 0, 1], [1, 1, 0, 1]]
    assert_adds_up(result, forest)


def test_a_stored_id_that_was_changed_after_the_commit_unproves_all_below():
    forest = forest_of(*CHAIN)
    first = replace(forest.turns[0], completion=ids([2, 9]))
    tampered = replace(forest, turns=(first, forest.turns[1]))
    result = made(tampered)
    assert masks(result) == [[0, 0, 0, 0, 0]]
    assert result.rows[0].masked == {"context": 4}
    assert_adds_up(result, tampered)


def test_a_node_without_a_digest_proves_nothing():
    forest = forest_of(*CHAIN)
    undigested = replace(forest, turns=(forest.turns[0], replace(forest.turns[1], context_digest=None)))
    assert masks(made(undigested)) == [[1, 1, 0, 0, 0]]


@pytest.mark.parametrize(
    ("position", "mask"),
    [(0, [0, 0, 0, 0, 0]), (2, [1, 0, 0, 0, 0]), (3, [1, 1, 0, 0, 0]), (5, [1, 1, 0, 1, 0])],
)
def test_a_token_that_a_hook_changed_unproves_itself_and_all_behind_it(position: int, mask: list[int]):
    def change(samples: Any, meta: Any) -> Any:
        tokens = samples[0].tokens.copy()
        tokens[position] = 99
        samples[0].tokens = tokens
        return samples

    forest = forest_of(*CHAIN)
    result = made(forest, change)
    assert masks(result) == [mask]
    assert result.rows[0].masked == {"context": 4 - sum(mask)}
    assert_adds_up(result, forest)


@pytest.mark.parametrize("value", [-9.0, float("nan"), float("-inf")])
def test_a_logprob_that_is_not_its_own_is_masked(value: float):
    def change(samples: Any, meta: Any) -> Any:
        samples[0].rollout_log_probs[1] = value
        return samples

    forest = forest_of(*CHAIN)
    result = made(forest, change)
    assert masks(result) == [[1, 0, 0, 1, 1]]
    assert result.rows[0].masked == {"logprob": 1}
    assert np.isfinite(result.rows[0].logprobs).all()
    assert_adds_up(result, forest)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_stored_logprob_that_is_not_finite_is_masked(value: float):
    broken = turn(0, None, [1], [2, 3], logprobs=np.array([value, -1.0]))
    assert masks(made(forest_of(broken))) == [[0, 1]]


def test_a_hook_cannot_train_what_was_not_sampled():
    def change(samples: Any, meta: Any) -> Any:
        samples[0].loss_mask[:] = 1
        return samples

    forest = forest_of(*CHAIN)
    result = made(forest, change)
    assert masks(result) == [[1, 1, 0, 1, 1]]
    assert result.rows[0].unsampled == 1
    assert_adds_up(result, forest)


def test_what_a_hook_masks_is_counted():
    def change(samples: Any, meta: Any) -> Any:
        samples[0].loss_mask = [0] * samples[0].response_length
        return samples

    forest = forest_of(*CHAIN)
    result = made(forest, change)
    assert result.rows[0].masked == {"postprocessor": 4}
    assert_adds_up(result, forest)


def test_a_hook_that_cuts_the_row_leaves_the_rest_proven():
    def change(samples: Any, meta: Any) -> Any:
        sample = samples[0]
        sample.tokens = sample.tokens[:-1]
        sample.response_length -= 1
        sample.loss_mask = sample.loss_mask[:-1]
        sample.rollout_log_probs = sample.rollout_log_probs[:-1]
        return samples

    forest = forest_of(*CHAIN)
    result = made(forest, change)
    assert masks(result) == [[1, 1, 0, 1]]
    assert result.rows[0].masked == {"postprocessor": 1}
    assert_adds_up(result, forest)


def test_boundary_trims_are_counted():
    forest = forest_of(turn(0, None, [1], [2, 9]), turn(1, 0, [7, 8], [3], trim=1))
    result = made(forest, max_trim_tokens=1)
    assert result.rows[0].masked == {"boundary_trim": 1}
    assert_adds_up(result, forest)


@pytest.mark.parametrize(
    ("finish_reason", "reason"),
    [("length", "after_truncated"), ("abort", "after_aborted"), (None, "after_pending")],
)
def test_turns_behind_one_that_did_not_complete_are_counted(finish_reason: Any, reason: str):
    forest = forest_of(turn(0, None, [1], [2, 3], finish_reason=finish_reason), turn(1, 0, [4], [5, 6, 7]))
    result = made(forest)
    assert result.rows[0].masked == {reason: 3}
    assert result.rows[0].stopped_at == 0
    assert_adds_up(result, forest)


@pytest.mark.parametrize(("limit", "masked"), [(5, 1), (4, 2), (3, 2), (2, 3)])
def test_what_the_budget_cuts_is_counted(limit: int, masked: int):
    forest = forest_of(*CHAIN)
    result = made(forest, limit=limit)
    assert result.rows[0].masked == {"max_seq_len": masked}
    assert result.rows[0].stopped_reason == "max_seq_len"
    assert_adds_up(result, forest)


def test_turns_without_replay_rows_are_counted():
    rows = np.zeros(2 * 2, dtype="<i4").tobytes()
    forest = forest_of(turn(0, None, [1], [2, 3], routed_experts=rows), turn(1, 0, [4], [5]))
    result = made(forest, r3_layers=1)
    assert result.rows[0].masked == {"replay_missing": 1}
    assert (result.rows[0].stopped_at, result.rows[0].stopped_reason) == (1, "replay_missing")
    assert_adds_up(result, forest)


def test_leaves_without_a_row_are_reported_with_their_reason():
    ask = {"request_digest": b"a"}
    turns = [
        turn(0, None, [1], [2], **ask),
        turn(1, None, [1], [3, 3], **ask),
        turn(2, None, [1], [4, 4, 4], root_class="side"),
    ]
    forest = forest_of(*turns)
    superseded = made(forest, picker="drop_superseded")
    assert [(gone.leaf, gone.reason, gone.superseded_by) for gone in superseded.report.dropped] == [
        (0, "superseded", 1)
    ]
    assert superseded.report.count.masked == {"superseded": 1}
    main = made(forest, picker="main_only")
    assert main.report.count.masked == {"not_picked": 3}
    longest = made(forest, picker="longest")
    assert longest.report.count.masked == {"superseded": 1, "not_picked": 2}
    over = made(forest_of(*turns, turn(3, None, [1] * 9, [5])), limit=4)
    assert over.report.count.masked == {"max_seq_len": 1}
    dropped = made(forest, lambda samples, meta: samples[:1])
    assert dropped.report.count.masked == {"postprocessor_dropped": 5}
    for result in (superseded, main, longest, dropped):
        assert_adds_up(result, forest)


def test_what_led_to_a_superseded_leaf_is_not_superseded_itself():
    ask = {"request_digest": b"a"}
    turns = [
        turn(0, None, [1], [2]),
        turn(1, 0, [1], [3, 3], **ask),
        turn(2, 0, [1], [4, 4], **ask),
        turn(3, None, [1], [5] * 9),
    ]
    result = made(forest_of(*turns), picker="longest")
    assert result.report.count.masked == {"superseded": 2, "not_picked": 3}


def test_rolled_back_turns_are_reported():
    forest = forest_of(*FORK, policy="rollback")
    result = made(forest)
    assert [row.leaf for row in result.rows] == [2]
    assert result.report.count.masked == {"rolled_back": 1}
    assert_adds_up(result, forest)


def test_no_rows_says_why():
    assert made(forest_of()).report.empty_reason == "no_records"
    assert made(forest_of(*CHAIN), limit=1).report.empty_reason == "all_truncated"
    assert made(forest_of(*CHAIN)).report.empty_reason is None


def test_the_samples_behind_the_rows_carry_the_proven_masks():
    def change(samples: Any, meta: Any) -> Any:
        samples[0].loss_mask = [1] * samples[0].response_length
        return samples

    result = made(forest_of(*CHAIN), change)
    assert [sample.loss_mask.tolist() for sample in result.samples] == masks(result) == [[1, 1, 0, 1, 1]]


def test_copies_of_a_row_train_once_and_have_ids_of_their_own():
    forest = forest_of(*CHAIN)
    result = made(forest, lambda samples, meta: [samples[0], samples[0].fresh(samples[0].leaf)])
    assert [row.sample_id[32:] for row in result.rows] == [":1", ":1.1"]
    assert [row.trained for row in result.rows] == [4, 0]
    assert result.rows[1].masked == {"trained_elsewhere": 4}
    assert_adds_up(result, forest)


def test_null_tokens_are_refused():
    def change(samples: Any, meta: Any) -> Any:
        samples[0].tokens, samples[0].response_length = [None], 1
        samples[0].loss_mask = samples[0].rollout_log_probs = None
        return samples

    with pytest.raises(SamplesFailed, match="tokens values do not fit"):
        made(forest_of(*CHAIN), change)
