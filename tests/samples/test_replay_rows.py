"""R3: full payloads per turn, additional ones per path, and every way in which they can contradict the
tokens."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sessions_app.errors import SamplesFailed
from tests.samples.builders import RULES, leaf_of, sample_of, turn
from trainer_export.samples.assemble import assemble, payloads_needed
from trainer_export.samples.replay_rows import additional_rows
from trainer_export.samples.sample import Stop
from trainer_export.samples.values import Payload, Turn


def rows(count: int, first: int = 0, layers: int = 2, width: int = 2) -> bytes:
    """`count` rows, each filled with its own number."""
    numbers = np.arange(first, first + count, dtype="<i4")
    return np.repeat(numbers, layers * width).tobytes()


def first_values(sample: Any, name: str = "rollout_routed_experts") -> list[int]:
    return getattr(sample, name)[:, 0, 0].tolist()


def test_the_last_merged_turn_gives_the_rows_cut_to_the_tokens():
    turns = [
        turn(0, None, [1, 2], [3], routed_experts=rows(2)),
        turn(1, 0, [4], [5, 6], routed_experts=rows(5, first=100)),
    ]
    sample = sample_of(*turns, r3_layers=2)
    assert sample.rollout_routed_experts.shape == (5, 2, 2)
    assert first_values(sample) == [100, 101, 102, 103, 104]
    assert first_values(sample_of(*turns, r3_layers=2, max_seq_len=5)) == [100, 101, 102, 103]
    assert first_values(sample_of(*turns, r3_layers=2, max_seq_len=4)) == [0, 1]


def test_trimmed_ids_take_their_rows_with_them():
    turns = [
        turn(0, None, [1], [2, 9], routed_experts=rows(2)),
        turn(1, 0, [7], [3], trim=1, routed_experts=rows(3), finish_reason="stop"),
    ]
    sample = sample_of(*turns, r3_layers=2, max_trim_tokens=1, max_seq_len=2)
    assert first_values(sample) == [0]


def test_the_merge_ends_before_a_turn_without_the_rows_held():
    turns = [turn(0, None, [1], [2], routed_experts=rows(1)), turn(1, 0, [3], [4])]
    sample = sample_of(*turns, r3_layers=2)
    assert sample.tokens.tolist() == [1, 2]
    assert sample.stop == Stop(1, "replay_missing")


def test_rows_that_come_late_do_not_end_the_merge():
    turns = [turn(0, None, [1], [2]), turn(1, 0, [3], [4], routed_experts=rows(3))]
    assert first_values(sample_of(*turns, r3_layers=2)) == [0, 1, 2]


def test_indexer_rows_bring_their_own_layer_count():
    sample = sample_of(turn(0, None, [1], [2, 3], indexer_topk=rows(2, layers=3), indexer_layers=3))
    assert sample.rollout_indexer_topk.shape == (2, 3, 2)
    with pytest.raises(SamplesFailed) as refusal:
        sample_of(turn(0, None, [1], [2], indexer_topk=rows(1)))
    assert str(refusal.value) == (
        "Server returned indexer_topk without indexer_topk_num_layers; "
        "sglang-miles must include the layer count in meta_info."
    )


@pytest.mark.parametrize("payload", [rows(2)[:-4], rows(1)[:-4] + b"x", b"xyz"])
def test_a_payload_of_the_wrong_size_is_refused(payload: bytes):
    with pytest.raises(SamplesFailed) as refusal:
        sample_of(turn(0, None, [1, 2], [3], routed_experts=payload), r3_layers=2)
    assert refusal.value.status == 422
    assert str(refusal.value)


def test_a_payload_without_a_configured_layer_count_is_refused():
    with pytest.raises(SamplesFailed, match="TITO_R3_LAYERS is not set"):
        sample_of(turn(0, None, [1], [2], routed_experts=rows(1)))


def test_only_the_payloads_that_a_sample_hands_out_need_to_be_read():
    turns = [
        turn(0, None, [1, 2], [3], routed_experts=rows(2)),
        turn(1, 0, [4], [5, 6], routed_experts=rows(5, 100), indexer_topk=rows(5, 50), indexer_layers=2),
        turn(2, 1, [7], [8], routed_experts=rows(7, 200), indexer_topk=rows(7, 70), indexer_layers=2),
    ]
    for limit, last in ((None, 2), (7, 1), (3, 0)):
        rules = replace(RULES, r3_layers=2, max_seq_len=limit)
        kinds = ("routed_experts", "indexer_topk") if last else ("routed_experts",)
        assert payloads_needed(leaf_of(*turns), rules) == {(last, kind) for kind in kinds}
        unread = [one if one.seq == last else without_bytes(one) for one in turns]
        sample = assemble(leaf_of(*unread), rules)
        assert first_values(sample)[0] == 100 * last
    with pytest.raises(SamplesFailed, match="0 of 112 bytes of replay rows are there"):
        sample_of(*map(without_bytes, turns), r3_layers=2)
    assert sample_of(*map(without_bytes, turns), r3_layers=2, replay=False).rollout_routed_experts is None
    assert payloads_needed(leaf_of(*turns), replace(RULES, r3_layers=2, max_seq_len=2)) == set()


def without_bytes(one: Turn) -> Turn:
    sizes = {name: getattr(one, name) for name in ("routed_experts", "indexer_topk")}
    return replace(one, **{name: Payload(held.size) for name, held in sizes.items() if held})


def test_additional_rows_need_every_payload_of_the_path():
    turns = [patch(0, 0, rows(2)), patch(1, 2, rows(3))]
    rules = replace(RULES, r3_layers=2, additional_r3=True)
    assert payloads_needed(leaf_of(*turns), rules) == {(0, "routed_experts"), (1, "routed_experts")}


def patch(seq: int, start: int | None, payload: bytes | None, **fields: Any) -> Any:
    """Two prompt ids and one sampled id per turn, the payload of additional mode."""
    parent = seq - 1 if seq else None
    return turn(seq, parent, [10, 11], [12], routed_experts=payload, routed_experts_start=start, **fields)


def additional(*turns: Any, **rules: Any) -> Any:
    return sample_of(*turns, r3_layers=2, additional_r3=True, **rules)


def test_patches_are_joined_and_cut_to_the_tokens():
    turns = [patch(0, 0, rows(2)), patch(1, 2, rows(3, first=2)), patch(2, 5, rows(3, first=5))]
    sample = additional(*turns)
    assert first_values(sample) == list(range(8))
    assert first_values(additional(*turns, max_seq_len=6)) == list(range(5))


def test_patches_behind_the_end_of_the_sample_are_not_looked_at():
    turns = [patch(0, 0, rows(2), finish_reason="abort"), patch(1, None, None)]
    assert first_values(additional(*turns)) == [0, 1]


def test_no_payload_anywhere_means_no_tensor():
    assert additional(patch(0, None, None)).rollout_routed_experts is None


def test_one_token_needs_no_rows():
    sample = additional(turn(0, None, [1], [], routed_experts=b"", routed_experts_start=0))
    assert sample.rollout_routed_experts.shape == (0, 2, 0)


@pytest.mark.parametrize(
    ("turns", "text"),
    [
        (
            [patch(0, 0, rows(2)), patch(1, 2, None)],
            "additional R3: record 1 has no routed_experts payload",
        ),
        (
            [patch(0, None, rows(2))],
            "additional R3: record 0 request carries no routed_experts_start_len",
        ),
        ([patch(0, 1, rows(1))], "additional R3: record 0 starts at row 1; expected 0"),
        (
            [patch(0, 0, rows(2)), patch(1, 0, rows(5))],
            "additional R3: record 1 starts at row 0; expected 2",
        ),
        (
            [turn(0, None, [], [], routed_experts=b"", routed_experts_start=0), patch(1, 0, rows(2))],
            "additional R3: record 0 has invalid offsets (start=0, end=-1)",
        ),
        ([patch(0, 0, b"")], "additional R3: record 0 payload presence does not match 2 rows"),
        (
            [turn(0, None, [1], [], routed_experts=rows(1), routed_experts_start=0)],
            "additional R3: record 0 payload presence does not match 0 rows",
        ),
    ],
)
def test_patches_that_contradict_the_path_are_refused(turns: list[Any], text: str):
    with pytest.raises(SamplesFailed) as refusal:
        additional(*turns)
    assert str(refusal.value) == text


def test_too_few_rows_are_refused():
    with pytest.raises(SamplesFailed) as refusal:
        additional_rows([patch(0, 0, rows(2))], 5, 2)
    assert str(refusal.value) == (
        "additional R3 covers 2 rows but the merged sample needs 5 (len(tokens) - 1)"
    )


def test_patches_of_another_width_are_refused_with_numpys_words():
    with pytest.raises(SamplesFailed):
        additional(patch(0, 0, rows(2)), patch(1, 2, rows(3, width=3)))
