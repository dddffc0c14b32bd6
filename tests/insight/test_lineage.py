"""The picture of a forest: every node once, nothing on top of anything else."""

import time

from hypothesis import given
from hypothesis import strategies as st

from sessions_app.insight.lineage import Glyph, Lineage, Place, lay_out


@st.composite
def forests(draw: st.DrawFn) -> list[Place]:
    size = draw(st.integers(0, 60))
    parents = [draw(st.one_of(st.none(), st.integers(0, at - 1))) if at else None for at in range(size)]
    marks = draw(st.lists(st.booleans(), min_size=size, max_size=size))
    return [Place(seq, parent, mark) for seq, (parent, mark) in enumerate(zip(parents, marks, strict=True))]


def chain(length: int) -> list[Place]:
    return [Place(seq, seq - 1 if seq else None, False) for seq in range(length)]


@given(forests(), st.booleans())
def test_every_node_stands_in_one_glyph(places: list[Place], collapse: bool) -> None:
    picture = lay_out(places, collapse=collapse)
    assert sorted(seq for glyph in picture.glyphs for seq in glyph.seqs) == [place.seq for place in places]


@given(forests(), st.booleans())
def test_no_lineage_runs_over_a_glyph_of_another(places: list[Place], collapse: bool) -> None:
    picture = lay_out(places, collapse=collapse)
    for glyph in picture.glyphs:
        if glyph.parent is None or picture.glyphs[glyph.parent].lane != glyph.lane:
            continue
        start = picture.glyphs[glyph.parent].column
        between = [
            one for one in picture.glyphs if one.lane == glyph.lane and start < one.column < glyph.column
        ]
        assert between == []


@given(forests(), st.booleans())
def test_only_first_children_keep_the_lane(places: list[Place], collapse: bool) -> None:
    picture = lay_out(places, collapse=collapse)
    keeping = [glyph.parent for glyph in picture.glyphs if _keeps(picture, glyph)]
    assert len(keeping) == len(set(keeping))
    for glyph in picture.glyphs:
        if glyph.parent is not None and not _keeps(picture, glyph):
            assert glyph.lane > picture.glyphs[glyph.parent].lane


def _keeps(picture: Lineage, glyph: Glyph) -> bool:
    return glyph.parent is not None and picture.glyphs[glyph.parent].lane == glyph.lane


@given(forests())
def test_marked_nodes_stand_alone(places: list[Place]) -> None:
    for glyph in lay_out(places, collapse=True).glyphs:
        assert len(glyph.seqs) == 1 or not any(places[seq].marked for seq in glyph.seqs)


@given(forests(), st.booleans())
def test_columns_follow_commit_order(places: list[Place], collapse: bool) -> None:
    glyphs = lay_out(places, collapse=collapse).glyphs
    assert [glyph.column for glyph in glyphs] == list(range(len(glyphs)))
    assert [glyph.first for glyph in glyphs] == sorted(glyph.first for glyph in glyphs)


def test_a_straight_session_is_a_chain_and_its_leaf() -> None:
    picture = lay_out(chain(1000), collapse=True)
    assert [len(glyph.seqs) for glyph in picture.glyphs] == [999, 1]
    assert picture.lanes == 1


def test_short_chains_stay_as_they_are() -> None:
    assert len(lay_out(chain(3), collapse=True).glyphs) == 3


def test_a_star_of_retries_needs_two_lanes() -> None:
    places = [Place(0, None, False), *(Place(seq, 0, False) for seq in range(1, 1000))]
    assert lay_out(places, collapse=True).lanes == 2


def test_a_parent_that_is_not_shown_makes_a_root() -> None:
    assert [
        glyph.parent for glyph in lay_out([Place(7, 3, False), Place(8, 7, False)], collapse=False).glyphs
    ] == [None, 0]


def test_one_node_and_none() -> None:
    assert lay_out([], collapse=True).lanes == 0
    assert lay_out([Place(0, None, False)], collapse=True).lanes == 1


def test_a_hundred_thousand_nodes_in_a_moment() -> None:
    started = time.perf_counter()
    lay_out(
        [Place(seq, max(0, seq - 1 - seq % 3) if seq else None, False) for seq in range(20_000)],
        collapse=True,
    )
    assert time.perf_counter() - started < 5
