"""Turns against all open branches."""

from hypothesis import given
from hypothesis import strategies as st

from tests.rendering.test_drift import Letters
from trainer_export.traces.rows.branches import BranchTurn, EqualPrompts, branches


def turn(key, prompt, response, log_probs=None, reward=None):
    return BranchTurn(key, prompt, response, log_probs, reward)


def keys(outcome):
    return [[item.key for item in row.turns] for row in outcome.rows]


def test_interleaved_agents_give_a_row_each():
    turns = [
        turn("a1", [1], [2]),
        turn("b1", [7], [8]),
        turn("a2", [1, 2, 3], [4]),
        turn("b2", [7, 8, 9], [9]),
    ]
    assert keys(branches(turns)) == [["a1", "a2"], ["b1", "b2"]]


def test_the_longest_prefix_wins():
    turns = [turn("a", [1], [2]), turn("b", [1], [2, 3]), turn("c", [1, 2, 3, 4], [5])]
    assert keys(branches(turns)) == [["a"], ["b", "c"]]


def test_layout_of_a_row():
    row = branches([turn("a", [1], [2], [-1.0]), turn("b", [1, 2, 3], [4, 5])]).rows[0]
    assert (row.prompt_ids, row.response_ids) == ([1], [2, 3, 4, 5])
    assert row.loss_mask == [1, 0, 1, 1]
    assert row.log_probs == [-1.0, 0.0, None, None]


def test_equal_prompts_by_policy():
    turns = [turn("a", [1], [2], reward=1.0), turn("b", [1], [3], reward=0.5), turn("c", [1], [4])]
    assert keys(branches(turns)) == [["a"], ["b"], ["c"]]
    assert keys(branches(turns, equal_prompts=EqualPrompts.LAST)) == [["c"]]
    best = branches(turns, equal_prompts=EqualPrompts.BEST)
    assert keys(best) == [["a"]]
    assert [item.key for item in best.left_out] == ["b", "c"]


def test_breaks_are_classified_against_the_closest_branch():
    turns = [turn("a", [1, 10], [11]), turn("b", [1, 12, 10], [11])]
    rows = branches(turns, tokens=Letters()).rows
    assert rows[0].broken_from is None
    assert (rows[1].broken_from.retoken_mismatch, rows[1].broken_from.position) == (True, 1)


IDS = st.lists(st.integers(0, 2), max_size=4)


@given(st.lists(st.tuples(IDS, IDS), max_size=8))
def test_each_response_is_trained_once_behind_its_own_prompt(pairs):
    outcome = branches([turn(index, prompt, response) for index, (prompt, response) in enumerate(pairs)])
    seen = []
    for row in outcome.rows:
        assert len(row.response_ids) == len(row.loss_mask) == len(row.log_probs)
        for item in row.turns:
            seen.append(item.key)
            end = len(item.prompt_ids) + len(item.response_ids)
            assert row.ids[:end] == [*item.prompt_ids, *item.response_ids]
        assert sum(row.loss_mask) == sum(len(item.response_ids) for item in row.turns)
    assert sorted(seen) == list(range(len(pairs)))
