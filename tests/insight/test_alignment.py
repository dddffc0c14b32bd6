"""Aligned sequences: nothing lost, nothing called equal that is not, and fast where it has to be."""

import time

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.insight.alignment import align, matches
from sessions_app.packing import Ids

SEPARATORS = frozenset({0, 1})
ids = st.lists(st.integers(0, 5), max_size=40)


def array(numbers: list[int]) -> Ids:
    return np.array(numbers, dtype=np.int32)


@given(st.lists(ids, min_size=1, max_size=3))
def test_blocks_cover_every_sequence_in_order(lanes: list[list[int]]) -> None:
    blocks = align([array(lane) for lane in lanes], SEPARATORS)
    for number, lane in enumerate(lanes):
        bounds = [block.bounds[number] for block in blocks]
        assert [start for start, _ in bounds] == [0, *(end for _, end in bounds)][: len(bounds)]
        assert (bounds[-1][1] if bounds else 0) == len(lane)


@given(st.lists(ids, min_size=2, max_size=3))
def test_equal_blocks_hold_equal_ids(lanes: list[list[int]]) -> None:
    for block in align([array(lane) for lane in lanes], SEPARATORS):
        if block.equal:
            pieces = {tuple(lane[start:end]) for lane, (start, end) in zip(lanes, block.bounds, strict=True)}
            assert len(pieces) == 1


@given(ids)
def test_a_sequence_equals_itself_in_one_block(numbers: list[int]) -> None:
    lane = array(numbers)
    assert [block.equal for block in align([lane, lane, lane], SEPARATORS)] == ([True] if numbers else [])


def test_one_changed_id_is_one_block() -> None:
    blocks = align([array([9, 1, 2, 3, 4]), array([9, 1, 7, 3, 4]), array([9, 1, 2, 3, 4])], SEPARATORS)
    assert [(block.equal, block.bounds[0]) for block in blocks] == [
        (True, (0, 2)),
        (False, (2, 3)),
        (True, (3, 5)),
    ]


def test_a_respelled_word_leaves_the_rest_equal() -> None:
    blocks = align([array([5, 6, 7, 8]), array([5, 60, 61, 7, 8])], SEPARATORS)
    assert [block.bounds for block in blocks] == [((0, 1), (0, 1)), ((1, 2), (1, 3)), ((2, 4), (3, 5))]


def test_a_hundred_thousand_ids_that_differ_in_every_turn_take_a_moment() -> None:
    generator = np.random.default_rng(7)
    turns = [generator.integers(10, 5000, 500) for _ in range(200)]
    served = array([number for turn in turns for number in (0, *turn.tolist(), 1)])
    drifted = array(
        [number for turn in turns for number in (0, *turn[:250].tolist(), 9999, *turn[252:].tolist(), 1)]
    )
    started = time.perf_counter()
    found = matches(served, drifted, SEPARATORS)
    assert time.perf_counter() - started < 3
    assert sum(match.length for match in found) == len(served) - 2 * len(turns)
