"""One leaf, one sample: trimming, statuses, the token budget, merging, what rides along, every refusal."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sessions_app.errors import SamplesFailed
from tests.samples.builders import RULES, as_text, forest_of, ids, leaf_of, sample_of, turn
from trainer_export.samples.assemble import assemble
from trainer_export.samples.forest import leaves_of
from trainer_export.samples.sample import Stop
from trainer_export.samples.values import CutContinuation, Speculative


def refusal_of(leaf: Any, **rules: Any) -> str:
    with pytest.raises(SamplesFailed) as refusal:
        assemble(leaf, replace(RULES, **rules))
    assert refusal.value.status == 422
    return str(refusal.value)


def test_completions_are_trained_and_observations_are_not():
    sample = sample_of(turn(0, None, [1, 2], [3, 4]), turn(1, 0, [5, 6], [7]))
    assert sample.tokens.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert sample.response_length == 5
    assert sample.loss_mask.tolist() == [1, 1, 0, 0, 1]
    assert sample.rollout_log_probs.tolist() == [-1.0, -1.001, 0.0, 0.0, -2.0]
    assert sample.response == "[3][4][5][6][7]"
    assert sample.status == "completed"
    assert sample.stop is None


def test_each_part_is_decoded_by_itself_and_nothing_else_is():
    decoded: list[list[int]] = []

    def spy(part: Any) -> str:
        decoded.append(part.tolist())
        return as_text(part)

    turns = [
        turn(0, None, [1, 2], [3, 4]),
        turn(1, 0, [5], [6], finish_reason="length"),
        turn(2, 1, [7], [8]),
    ]
    sample_of(*turns, decode=spy)
    assert decoded == [[3, 4], [5], [6]]


def test_boundary_ids_that_the_next_prompt_replaced_are_trimmed():
    sample = sample_of(turn(0, None, [1], [2, 9]), turn(1, 0, [7, 8], [3], trim=1), max_trim_tokens=1)
    assert sample.tokens.tolist() == [1, 2, 7, 8, 3]
    assert sample.loss_mask.tolist() == [1, 0, 0, 1]
    assert sample.response == "[2][7][8][3]"


def test_a_boundary_id_that_the_next_prompt_repeats_stays_trained():
    sample = sample_of(turn(0, None, [1], [2, 9]), turn(1, 0, [9, 8], [3], trim=1), max_trim_tokens=1)
    assert sample.tokens.tolist() == [1, 2, 9, 8, 3]
    assert sample.loss_mask.tolist() == [1, 1, 0, 1]


def test_more_trimming_than_the_renderer_allows_is_refused():
    leaf = leaf_of(turn(0, None, [1], [2, 3, 4, 5]), turn(1, 0, [7, 8], [9], trim=2))
    assert refusal_of(leaf, max_trim_tokens=1) == (
        "trim_count 2 exceeds allowed=1 (is_last=False, max_trim_tokens=1); "
        "output_ids[-3:]=[3, 4, 5], accumulated[cursor:cursor+3]=[2, 3, 7]"
    )


def test_the_last_completion_is_never_trimmed():
    leaf = leaf_of(turn(0, None, [1], [2, 3]), accumulated_ids=ids([1, 2]))
    assert refusal_of(leaf, max_trim_tokens=1) == (
        "trim_count 1 exceeds allowed=0 (is_last=True, max_trim_tokens=1); "
        "output_ids[-3:]=[2, 3], accumulated[cursor:cursor+3]=[2]"
    )


def test_ids_left_over_behind_the_last_turn_are_refused():
    leaf = leaf_of(turn(0, None, [1], [2, 3]), accumulated_ids=ids([1, 2, 3, 4]))
    assert refusal_of(leaf) == "cursor 3 != len(accumulated_token_ids) 4 after processing all 1 records"


def test_logprobs_that_are_not_one_per_id_are_refused():
    leaf = leaf_of(turn(0, None, [1], [2, 3], logprobs=np.array([-1.0])))
    assert refusal_of(leaf) == "node 0 has 1 logprobs for 2 sampled ids"


def test_a_prompt_that_adds_nothing_is_refused():
    leaf = leaf_of(turn(0, None, [1], [2]), turn(1, 0, [], [3]))
    assert refusal_of(leaf) == "obs_len must be > 0, got 0"


def test_a_prompt_shorter_than_what_it_repeats_is_refused():
    leaf = leaf_of(turn(0, None, [1], [2, 5]), turn(1, 0, [], [5], trim=1))
    assert refusal_of(leaf, max_trim_tokens=1) == "obs_len must be > 0, got -1"


def test_a_prompt_that_rewrites_what_came_before_is_refused():
    leaf = leaf_of(turn(0, None, [1, 2], []), turn(1, 0, [9], [3], trim=1))
    assert refusal_of(leaf, max_trim_tokens=1) == "b.tokens must start with a.tokens"


@pytest.mark.parametrize(
    ("finish_reason", "status"),
    [
        ("stop", "completed"),
        ("tool_calls", "completed"),
        ("length", "truncated"),
        ("abort", "aborted"),
        ("content_filter", "pending"),
        ("error", "pending"),
        ("", "pending"),
        (None, "pending"),
    ],
)
def test_status_follows_the_finish_reason(finish_reason: str | None, status: str):
    assert sample_of(turn(0, None, [1], [2], finish_reason=finish_reason)).status == status


@pytest.mark.parametrize(
    ("finish_reason", "stopped"), [("length", "truncated"), ("abort", "aborted"), (None, "pending")]
)
def test_the_merge_ends_at_a_turn_that_did_not_complete_and_says_so(finish_reason: Any, stopped: str):
    turns = [
        turn(0, None, [1], [2]),
        turn(1, 0, [3], [4], finish_reason=finish_reason),
        turn(2, 1, [5], [6]),
    ]
    sample = sample_of(*turns)
    assert sample.tokens.tolist() == [1, 2, 3, 4]
    assert sample.status == stopped
    assert sample.stop == Stop(1, stopped)
    assert [entry["turn"] for entry in sample.metadata["lifecycle"]] == [1, 2]


def test_a_cut_turn_closed_by_the_next_prompt_does_not_end_the_merge():
    cut = turn(0, None, [1], [2, 3], finish_reason="length")
    closed = turn(1, 0, [9, 5], [6], cut_continuation=CutContinuation.CLOSE)
    sample = sample_of(cut, closed)
    assert sample.tokens.tolist() == [1, 2, 3, 9, 5, 6]
    assert sample.loss_mask.tolist() == [1, 1, 0, 0, 1]
    assert sample.status == "completed"
    assert sample.stop is None


def test_a_cut_turn_joined_plainly_ends_the_merge():
    cut = turn(0, None, [1], [2, 3], finish_reason="length")
    joined = turn(1, 0, [5], [6], cut_continuation=CutContinuation.JOIN)
    assert sample_of(cut, joined).stop == Stop(0, "truncated")


def test_closing_mends_only_a_cut_by_length():
    aborted = turn(0, None, [1], [2], finish_reason="abort")
    after = turn(1, 0, [5], [6], cut_continuation=CutContinuation.CLOSE)
    assert sample_of(aborted, after).stop == Stop(0, "aborted")


TWO_TURNS = (turn(0, None, [1, 2], [3, 4]), turn(1, 0, [5, 6], [7, 8]))


@pytest.mark.parametrize(
    ("limit", "tokens", "status", "stop"),
    [
        (None, 8, "completed", None),
        (8, 8, "completed", None),
        (7, 7, "truncated", Stop(1, "max_seq_len")),
        (6, 4, "completed", Stop(1, "max_seq_len")),
        (4, 4, "completed", Stop(1, "max_seq_len")),
        (3, 3, "truncated", Stop(0, "max_seq_len")),
    ],
)
def test_the_budget_cuts_at_turn_boundaries(limit: int | None, tokens: int, status: str, stop: Stop | None):
    sample = sample_of(*TWO_TURNS, max_seq_len=limit)
    assert sample.tokens.tolist() == [1, 2, 3, 4, 5, 6, 7, 8][:tokens]
    assert sample.status == status
    assert sample.stop == stop
    assert sample.response == as_text(sample.tokens[2:])


@pytest.mark.parametrize("limit", [2, 1, 0, -5])
def test_a_budget_that_no_sampled_id_fits_leaves_nothing(limit: int):
    assert assemble(leaf_of(*TWO_TURNS), replace(RULES, max_seq_len=limit)) is None


def test_the_budget_counts_what_is_left_after_trimming():
    turns = [turn(0, None, [1], [2, 9]), turn(1, 0, [7, 8], [3], trim=1)]
    assert sample_of(*turns, max_trim_tokens=1, max_seq_len=2).tokens.tolist() == [1, 2]


def test_an_end_by_status_comes_before_an_end_by_budget():
    turns = [turn(0, None, [1], [2], finish_reason="abort"), turn(1, 0, [3], [4]), turn(2, 1, [5], [6, 7])]
    assert sample_of(*turns, max_seq_len=5).stop == Stop(0, "aborted")


def test_an_empty_completion_is_a_sample_that_trains_nothing():
    sample = sample_of(turn(0, None, [1, 2], []))
    assert sample.response_length == 0
    assert sample.loss_mask.tolist() == []
    assert sample.response == ""


def test_counters_are_summed_over_merged_turns_only():
    first = Speculative(accepted=1, drafted=2, verifications=3, completion_tokens=4)
    turns = [
        turn(0, None, [1], [2], cached_tokens=3, prompt_tokens=10, weight_version="7", speculative=first),
        turn(1, 0, [3], [4], prompt_tokens=20, speculative=first, finish_reason="abort"),
        turn(2, 1, [5], [6], cached_tokens=50, prompt_tokens=30, weight_version="9"),
    ]
    sample = sample_of(*turns)
    assert sample.prefix_cache_info.cached_tokens == 3
    assert sample.prefix_cache_info.total_prompt_tokens == 30
    assert sample.weight_versions == ["7"]
    assert sample.spec_info == Speculative(2, 4, 6, 8)
    assert sample_of(turn(0, None, [1], [2])).spec_info is None


def test_lifecycle_of_one_turn_is_an_object_and_of_several_a_list():
    first = turn(0, None, [1], [2], engine_seconds=0.25, committed_at=10.0, requested_at=9.0)
    second = turn(1, 0, [3], [4], committed_at=20.0, requested_at=None)
    assert sample_of(first).metadata["lifecycle"] == {"t0": 9.75, "t1": 10.0, "turn": 1, "req_ts": 9.0}
    assert sample_of(first, second).metadata["lifecycle"] == [
        {"t0": 9.75, "t1": 10.0, "turn": 1, "req_ts": 9.0},
        {"t0": None, "t1": 20.0, "turn": 2, "prev_t1": 10.0},
    ]


def test_messages_ride_along_only_where_asked_for_and_only_with_the_whole_path():
    first = turn(0, None, [1], [2], messages_json='[{"role":"user"}]')
    second = turn(1, 0, [3], [4], messages_json='[{"role":"user","content":"\\ud800"}]')
    assert "messages" not in sample_of(first, second).metadata
    sample = sample_of(first, second, debug_messages=True)
    assert sample.metadata["messages"] == [{"role": "user", "content": "\ud800"}]
    assert "messages" not in sample_of(first, second, debug_messages=True, max_seq_len=2).metadata


def test_a_deep_path_costs_each_id_once():
    turns = [turn(seq, seq - 1 if seq else None, [1] * 20, [2] * 20) for seq in range(2000)]
    forest = forest_of(*turns)
    sample = assemble(leaves_of(forest)[0], RULES)
    assert sample is not None
    assert sample.tokens.size == 80_000
    assert np.count_nonzero(sample.loss_mask) == 40_000
