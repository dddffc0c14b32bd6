"""Which rows a reward touches: by leaf, by session, by turn, or none with its reason."""

from sessions_app.insight.reward_reach import Given, Row, reach_of, worth_of

ROWS = [Row(3, (0, 1, 3)), Row(4, (0, 1, 4))]
WHOLE, LEAF, TURN, LOST, AWAY = (
    Given(1, None, 1.0, 1.0),
    Given(2, 3, 0.5, 2.0),
    Given(3, 1, 0.25, 1.0),
    Given(4, 5, 9.0, 1.0),
    Given(5, 7, 9.0, 1.0),
)


def test_rewards_of_a_leaf_win_over_those_of_the_session() -> None:
    whole, leaf = reach_of([WHOLE, LEAF], ROWS, {})
    assert (whole.enters, whole.outranked) == ([4], [3])
    assert (leaf.enters, leaf.missed) == ([3], None)


def test_a_reward_of_a_turn_stands_in_every_row_with_that_turn_and_enters_none() -> None:
    (turn,) = reach_of([TURN], ROWS, {})
    assert (turn.enters, turn.stands_in, turn.missed) == ([], [3, 4], None)
    assert [one.number for one in worth_of([TURN], ROWS)] == [None, None]


def test_what_reached_nothing_says_why() -> None:
    lost, away = reach_of([LOST, AWAY], ROWS, {5: "superseded"})
    assert lost.missed == "its leaf has no row: superseded"
    assert away.missed == "no row goes through its node"
    assert reach_of([WHOLE], [], {})[0].missed == "the session has no row"


def test_several_at_one_place_add_up_by_weight() -> None:
    more = Given(6, 3, 2.0, 0.5)
    one, other = worth_of([WHOLE, LEAF, more], ROWS)
    assert (one.number, one.parts) == (2.0, [2, 6])
    assert (other.number, other.parts) == (1.0, [1])
