"""Turns against all open branches."""

from hypothesis import given
from hypothesis import strategies as st

from tests.rendering.test_drift import Letters
from trainer_export.traces.rows.branches import BranchTurn, EqualPrompts, branches
from trainer_export.traces.rows.contexts import OpenBranches
from trainer_export.traces.rows.session_rows import (
    CallTurn,
    branched_rows,
    chained_rows,
    continued,
    transition_rows,
)
from trainer_export.traces.rows.v1_rows import RowRules


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


def rival(contexts, prompt):
    """The rule as it is said: the longest of all that the prompt starts with, of equal ones the first."""
    fitting = [number for number, context in contexts if context and prompt[: len(context)] == context]
    return max(fitting, key=lambda number: len(dict(contexts)[number]), default=None)


@given(st.lists(st.tuples(IDS, IDS), max_size=10))
def test_every_earlier_context_is_tried(pairs):
    turns = [CallTurn(prompt, response, None, None) for prompt, response in pairs]
    contexts = [(index, turn.context) for index, turn in enumerate(turns)]
    expected = [rival(contexts[:index], turn.prompt_ids) for index, turn in enumerate(turns)]
    assert continued(turns) == expected


@given(st.lists(st.tuples(IDS, IDS), max_size=10))
def test_open_branches_are_those_that_nobody_went_on_from(pairs):
    opened, ends = OpenBranches(), {}
    for index, (prompt, response) in enumerate(pairs):
        found = opened.continued_by(prompt)
        assert found == rival(list(ends.items()), prompt)
        if found is None and ends:
            closest = opened.closest(prompt)
            assert common(prompt, closest) == max(common(prompt, end) for end in ends.values())
        elif found is not None:
            opened.close(found)
            del ends[found]
        ends[index] = prompt + response
        opened.add(index, prompt + response)


def common(one, other):
    return next((i for i, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
                min(len(one), len(other)))  # fmt: skip


def test_rows_tell_the_call_they_go_on_from_though_another_stands_between():
    turns = [
        CallTurn(*ids, None, None) for ids in (([1], [2]), ([7], [8]), ([1, 2, 3], [4]), ([1, 2, 5], [6]))
    ]
    for rows in (
        transition_rows(turns, None, RowRules(), Letters()).rows,
        chained_rows(turns, None, RowRules(), Letters()).rows,
    ):
        assert [row.continues for row in rows] == [None, None, 0, 0]
    branched = branched_rows(turns, None, RowRules(), Letters(), EqualPrompts.ALL).rows
    assert [(row.turns, row.continues) for row in branched] == [((0, 2), None), ((1,), None), ((3,), 0)]


def test_a_break_of_a_transition_is_from_the_closest_open_branch():
    turns = [CallTurn(*ids, None, None) for ids in (([1, 2], [3]), ([7], [8]), ([1, 2, 9], [4]))]
    rows = transition_rows(turns, None, RowRules(), Letters()).rows
    assert [row.broken and row.broken.position for row in rows] == [None, 0, 2]
