"""What the numbers of the table mean."""

from io import StringIO

from rich.console import Console

from sessions_app.demo_agent.report import table
from sessions_app.demo_agent.rerender import first_difference
from sessions_app.demo_agent.totals import Rerendering, Totals, Turn

FIRST = {"x-tito-attach": "root", "x-tito-cause": "first_turn", "x-tito-reused-tokens": "0"}
APPENDED = {"x-tito-attach": "append", "x-tito-parent": "0", "x-tito-reused-tokens": "90"}
FORKED = APPENDED | {"x-tito-attach": "fork", "x-tito-cause": "retry"}


def totals(*headers: dict[str, str]) -> Totals:
    made = Totals(sessions=1)
    made.turns += [Turn.of(each, prompt_tokens=100, generated_tokens=10, seconds=0.5) for each in headers]
    return made


def printed(shown: Totals) -> dict[str, str]:
    """The table's rows by name."""
    screen = StringIO()
    Console(file=screen, width=120).print(table(shown))
    lines = [line.split() for line in screen.getvalue().splitlines()]
    return {
        " ".join(line[:at]): line[at]
        for line in lines
        if (at := next((at for at, word in enumerate(line) if word[0].isdigit()), 0))
    }


def test_what_is_reused_and_added_makes_the_prompts() -> None:
    rows = printed(totals(FIRST, APPENDED, FORKED))
    numbers = [rows[name] for name in ("tokenised", "reused", "added", "generated")]
    assert numbers == ["300", "180", "120", "30"]


def test_branches_are_counted_by_kind_and_cause() -> None:
    made = totals(FIRST, APPENDED, FORKED, FORKED)
    assert made.branches == {"fork (retry)": 2}
    assert printed(made)["fork (retry)"] == "2"


def test_a_turn_is_healed_if_it_has_a_parent() -> None:
    assert totals(FIRST, APPENDED, FORKED).healed == 2


def test_a_reply_that_is_not_in_the_tree_is_shown_as_such() -> None:
    lost = {"x-tito-recorded": "false", "x-tito-reason": "session_deleted"}
    assert printed(totals(FIRST, lost))["unrecorded"] == "1"
    assert "unrecorded" not in printed(totals(FIRST))


def test_nothing_done_is_no_division_by_zero() -> None:
    assert printed(Totals())["sessions"] == "0"


def test_the_first_difference_is_an_index() -> None:
    assert first_difference([1, 2, 3], [1, 2, 3]) is None
    assert first_difference([1, 2, 3], [1, 9, 3]) == 1
    assert first_difference([1, 2, 3], [1, 2]) == 2
    assert first_difference([1, 2], [1, 2, 3]) == 2


def test_comparisons_add_up_field_by_field() -> None:
    one = Rerendering(1, 2, 3, 4, 5, 6)
    one.add(Rerendering(10, 20, 30, 40, 50, 60))
    assert one == Rerendering(11, 22, 33, 44, 55, 66)
