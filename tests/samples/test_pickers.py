"""What each built-in picker keeps, and in which order."""

from typing import Any

import pytest

from tests.samples.builders import RULES, forest_of, turn
from trainer_export.samples.forest import leaves_of
from trainer_export.samples.payload import raw_samples
from trainer_export.samples.pickers import PICKERS
from trainer_export.samples.superseded import superseded_by

ASK, OTHER = b"a" * 16, b"b" * 16


def picked(name: str, *turns: Any) -> list[int]:
    forest = forest_of(*turns)
    raw = raw_samples(forest, leaves_of(forest), RULES)
    return [sample.leaf.last.seq for sample in PICKERS[name](raw, {})]


def reply(seq: int, parent: int | None = None, ask: bytes | None = ASK, **fields: Any) -> Any:
    return turn(seq, parent, [1, 2, seq], [3], request_digest=ask, **fields)


def test_every_picker_takes_no_leaves_for_no_rows():
    assert [PICKERS[name]([], {}) for name in PICKERS] == [[]] * 5


@pytest.mark.parametrize("parent", [None, 0])
def test_superseded_a_reply_asked_for_again_after_it_had_ended_goes(parent: int | None):
    above = [] if parent is None else [reply(0, None, OTHER)]
    first, second = (1, 2)
    assert picked("drop_superseded", *above, reply(first, parent), reply(second, parent)) == [second]


def test_superseded_also_when_the_later_reply_was_continued():
    assert picked("drop_superseded", reply(0), reply(1), reply(2, 1, OTHER)) == [2]


@pytest.mark.parametrize(
    "later",
    [
        pytest.param(reply(1, ask=OTHER), id="another request"),
        pytest.param(reply(1, requested_at=0.5), id="asked before the first had ended"),
        pytest.param(reply(1, requested_at=None), id="asked at an unknown time"),
        pytest.param(reply(1, finish_reason="length"), id="cut"),
        pytest.param(reply(1, finish_reason="abort"), id="aborted"),
        pytest.param(reply(1, finish_reason=None), id="ended without a reason"),
    ],
)
def test_superseded_only_by_the_same_request_completed_and_asked_later(later: Any):
    assert picked("drop_superseded", reply(0), later) == [0, 1]


def test_superseded_needs_a_known_request():
    assert picked("drop_superseded", reply(0, ask=None), reply(1, ask=None)) == [0, 1]


def test_superseded_in_the_very_moment_it_ended():
    assert picked("drop_superseded", reply(0), reply(1, requested_at=1.0)) == [1]


@pytest.mark.parametrize(("after_seq", "kept"), [(0, [1]), (-1, [0, 1])])
def test_superseded_what_prepare_saw_goes_before_the_clocks(after_seq: int, kept: list[int]):
    skewed = 0.0 if kept == [1] else 99.0
    assert picked("drop_superseded", reply(0), reply(1, requested_at=skewed, after_seq=after_seq)) == kept


def test_superseded_never_by_a_child_or_a_cousin():
    cousins = [reply(0, None, OTHER), reply(1, None, b"c" * 16), reply(2, 0), reply(3, 1)]
    assert picked("drop_superseded", *cousins) == [2, 3]


def test_superseded_of_three_attempts_the_last_completed_and_what_failed_after_it_stay():
    attempts = [reply(0), reply(1), reply(2, finish_reason="length")]
    assert picked("drop_superseded", *attempts) == [1, 2]
    forest = forest_of(*attempts)
    assert [superseded_by(leaf) for leaf in leaves_of(forest)] == [1, None, None]


def test_superseded_parallel_children_stay():
    children = [reply(seq, 0, requested_at=1.5, committed_at=2.0 + seq) for seq in (1, 2, 3)]
    assert picked("drop_superseded", reply(0), *children) == [1, 2, 3]


def test_retries_the_reference_rule_keeps_roots_and_the_last_child():
    turns = [
        reply(0),
        reply(1),
        reply(2, 1, OTHER),
        reply(3, 1, OTHER),
        reply(4, 3),
        reply(5, 3),
    ]
    assert picked("drop_retries", *turns) == [5, 0]


def test_retries_longest_path_first_then_latest():
    turns = [reply(0), reply(1), reply(2, 1, OTHER), reply(3), reply(4, 3, OTHER)]
    assert picked("drop_retries", *turns) == [4, 2, 0]


def test_retries_a_child_with_an_earlier_sibling_only_stays():
    assert picked("drop_retries", reply(0), reply(1, 0), reply(2, 0)) == [2]


def test_keep_all_in_commit_order():
    assert picked("keep_all", reply(0), reply(1), reply(2, 0)) == [1, 2]


def test_longest_counts_trained_tokens_and_prefers_the_later_of_equals():
    short, tall = turn(0, None, [1], [2]), turn(1, None, [1], [2, 3, 4])
    assert picked("longest", short, tall) == [1]
    assert picked("longest", tall, turn(2, None, [1] * 50, [2]), turn(3, None, [1], [5, 6, 7])) == [3]


def test_main_only_looks_at_the_root():
    turns = [
        turn(0, None, [1], [2], root_class="main"),
        turn(1, None, [1], [2], root_class="subagent"),
        turn(2, 0, [1], [2], root_class="side"),
        turn(3, None, [1], [2], root_class=None),
    ]
    assert picked("main_only", *turns) == [2]
