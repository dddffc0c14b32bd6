"""One session's payload under each policy, its arguments, and what rides on the samples."""

from typing import Any

import numpy as np
import pytest

from sessions_app.errors import InvalidArgument, InvalidJson
from tests.samples.builders import RULES, forest_of, turn
from trainer_export.samples.arguments import SamplesArguments, parse_arguments
from trainer_export.samples.cache import SampleCache
from trainer_export.samples.hooks import resolve_hooks
from trainer_export.samples.payload import SamplesPayload, samples_payload
from trainer_export.samples.rewards import number_of
from trainer_export.samples.values import Reward, SessionForest

HOOKS = resolve_hooks("keep_all", "default")


def payload(
    forest: SessionForest,
    max_seq_len: int | None = None,
    metadata: Any = None,
    cache: SampleCache | None = None,
) -> SamplesPayload:
    return samples_payload(forest, SamplesArguments(max_seq_len, metadata), HOOKS, RULES, cache)


BRANCHES = (turn(0, None, [1], [2, 3]), turn(1, 0, [4], [5]), turn(2, 0, [6], [7, 8]))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", SamplesArguments()),
        (b"  \n", SamplesArguments()),
        (b"{}", SamplesArguments()),
        (b'{"max_seq_len":null,"metadata":null}', SamplesArguments()),
        (b'{"max_seq_len":-5,"unknown":1}', SamplesArguments(max_seq_len=-5)),
        (b'{"metadata":[1]}', SamplesArguments(metadata=[1])),
    ],
)
def test_arguments(body: bytes, expected: SamplesArguments):
    assert parse_arguments(body) == expected


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"null",
        b"3",
        b'"x"',
        b'{"max_seq_len":"12"}',
        b'{"max_seq_len":12.0}',
        b'{"max_seq_len":true}',
        b'{"max_seq_len":[]}',
    ],
)
def test_odd_arguments_are_refused(body: bytes):
    with pytest.raises(InvalidArgument) as refusal:
        parse_arguments(body)
    assert (refusal.value.status, refusal.value.code) == (400, "invalid_argument")


@pytest.mark.parametrize("body", [b"{bad", b"\xff", b"[" * 100_000])
def test_what_is_no_json_is_refused(body: bytes):
    with pytest.raises(InvalidJson):
        parse_arguments(body)


@pytest.mark.parametrize("policy", ["rollback", "tree", "linear"])
def test_a_session_without_turns_has_no_records(policy: str):
    empty = payload(forest_of(policy=policy, metadata={"max_trim_tokens": 0}), metadata={"reward": 1})
    assert empty.samples == []
    assert empty.empty_reason == "no_records"
    assert ("agent" in empty.session_metadata) == (policy != "rollback")


@pytest.mark.parametrize("policy", ["rollback", "tree"])
def test_a_budget_that_leaves_nothing_says_so(policy: str):
    assert payload(forest_of(*BRANCHES, policy=policy), max_seq_len=1).empty_reason == "all_truncated"


def test_rollback_gives_the_active_path_and_runs_no_hooks():
    forest = forest_of(*BRANCHES, policy="rollback", active=1)
    result = payload(forest, metadata=["odd"])
    (sample,) = result.samples
    assert sample.tokens.tolist() == [1, 2, 3, 4, 5]
    assert list(sample.metadata) == ["lifecycle"]
    assert result.session_metadata == {}
    assert not result.with_reward


def test_tree_gives_every_leaf_with_its_place():
    result = payload(forest_of(*BRANCHES, mismatches={2: []}))
    first, second = result.samples
    assert first.metadata["leaf"] == {
        "node_id": 1,
        "parent": 0,
        "path_node_ids": [0, 1],
        "response_id": "resp-1",
    }
    assert list(first.metadata) == ["lifecycle", "accumulated_token_ids", "leaf"]
    assert list(second.metadata)[-1] == "tito_session_mismatch"
    assert first.metadata["accumulated_token_ids"].tolist() == [1, 2, 3, 4, 5]
    assert result.with_reward


def test_a_cut_leaf_still_describes_its_whole_path():
    first, second = payload(forest_of(*BRANCHES), max_seq_len=4).samples
    assert first.tokens.tolist() == second.tokens.tolist() == [1, 2, 3]
    assert first.metadata["accumulated_token_ids"].tolist() == [1, 2, 3, 4, 5]
    assert second.metadata["leaf"]["path_node_ids"] == [0, 2]


def test_leaves_that_the_budget_leaves_nothing_of_are_missing():
    turns = [turn(0, None, [1] * 9, [2]), turn(1, None, [1], [2])]
    (sample,) = payload(forest_of(*turns), max_seq_len=5).samples
    assert sample.leaf.last.seq == 1


def test_linear_samples_carry_the_healer_counters_and_nobody_else_can():
    healer = {"healed_turns": 1, "healed_prefix_tokens": 2, "nonlinear": 0, "close_unresolved": 0}
    forest = forest_of(*BRANCHES, policy="linear", healer=healer)
    for sample in payload(forest, metadata={"linear_healer": "mine", "x": 1}).samples:
        assert sample.metadata["linear_healer"] == healer
        assert sample.metadata["x"] == 1
    for sample in payload(forest_of(*BRANCHES, healer=healer)).samples:
        assert "linear_healer" not in sample.metadata


def test_finish_metadata_rides_on_every_sample_under_what_the_call_says():
    finish = {"reward": 1, "leaf": "mine", "why": "done"}
    told = payload(forest_of(*BRANCHES, finish_metadata=finish))
    assert told.session_metadata["agent"] == finish
    assert [sample.reward for sample in told.samples] == [1, 1]
    overruled = payload(forest_of(*BRANCHES, finish_metadata=finish), metadata={"reward": 0})
    assert [sample.reward for sample in overruled.samples] == [0, 0]
    assert [sample.metadata["why"] for sample in overruled.samples] == ["done", "done"]
    (rolled,) = payload(forest_of(*BRANCHES, policy="rollback", finish_metadata=finish)).samples
    assert rolled.metadata["why"] == "done"
    assert rolled.reward == 1
    assert "leaf" not in rolled.metadata


def test_reported_rewards_reach_the_samples_leaf_before_session():
    own = turn(2, 0, [6], [7, 8], rewards=(Reward("a", 1.0), Reward("b", 2.0, weight=0.5)))
    step = turn(0, None, [1], [2, 3], rewards=(Reward("step", 9.0),))
    forest = forest_of(step, BRANCHES[1], own, rewards=(Reward("reward", 0.25),))
    assert [sample.reward for sample in payload(forest).samples] == [0.25, 2.0]
    assert [sample.reward for sample in payload(forest, metadata={"reward": 7}).samples] == [7, 7]
    assert [sample.reward for sample in payload(forest_of(*BRANCHES)).samples] == [None, None]


def test_the_same_session_gives_the_same_samples_again_with_and_without_the_cache():
    forest, cache = forest_of(*BRANCHES), SampleCache(max_tokens=100)
    plain = payload(forest).samples
    for _ in range(2):
        cached = payload(forest, metadata={"reward": 1}, cache=cache).samples
        for one, other in zip(plain, cached, strict=True):
            assert one.tokens.tolist() == other.tokens.tolist()
            assert np.array_equal(one.loss_mask, other.loss_mask)
            assert one.metadata.keys() | {"reward"} == other.metadata.keys()
            assert one.metadata["lifecycle"] == other.metadata["lifecycle"]


def test_the_cache_keeps_limits_apart_and_hooks_from_spoiling_it():
    forest, cache = forest_of(*BRANCHES), SampleCache(max_tokens=100)
    first = payload(forest, cache=cache).samples[0]
    first.loss_mask[:] = 0
    first.metadata["lifecycle"].clear()
    again = payload(forest, cache=cache).samples[0]
    assert again.loss_mask.tolist() == [1, 1, 0, 1]
    assert len(again.metadata["lifecycle"]) == 2
    assert payload(forest, max_seq_len=3, cache=cache).samples[0].tokens.tolist() == [1, 2, 3]


def test_a_small_cache_forgets_and_stays_right():
    forest, cache = forest_of(*BRANCHES), SampleCache(max_tokens=6)
    for _ in range(3):
        tokens = [sample.tokens.tolist() for sample in payload(forest, cache=cache).samples]
        assert tokens == [[1, 2, 3, 4, 5], [1, 2, 3, 6, 7, 8]]


def test_tokens_of_a_sample_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        payload(forest_of(*BRANCHES)).samples[0].tokens[0] = 9


@pytest.mark.parametrize(
    ("reward", "number"),
    [
        (1, 1.0), (0.5, 0.5), (np.float32(1.5), 1.5), (np.int64(2), 2.0), (True, None),
        ("1", None), (None, None),
        ({"a": 1}, None), (float("nan"), None), (10**400, None), (np.float64("inf"), None),
    ],
)  # fmt: skip
def test_what_counts_as_one_number(reward: Any, number: float | None):
    assert number_of(reward) == number
