"""Which session the spans of a trace belong to that do not say so."""

from hypothesis import given
from hypothesis import strategies as st

from trainer_export.spans.homes import Place, homes


def found(*places: tuple[str, str | None, str | None]) -> dict[str, str]:
    return homes(Place(*place) for place in places)


def test_a_span_belongs_with_the_calls_below_it():
    assert found(("call", "agent", "s"), ("agent", "root", None), ("root", None, None)) == {
        "agent": "s",
        "root": "s",
    }


def test_a_span_without_calls_belongs_with_what_is_above_it():
    assert found(("root", None, "s"), ("tool", "root", None), ("inner", "tool", None)) == {
        "tool": "s",
        "inner": "s",
    }


def test_what_is_above_two_sessions_belongs_to_none():
    places = [
        ("root", None, None),
        ("a", "root", None),
        ("b", "root", None),
        ("call a", "a", "s"),
        ("call b", "b", "t"),
        ("tool b", "b", None),
        ("lost", "root", None),
    ]
    assert found(*places) == {"a": "s", "b": "t", "tool b": "t"}


def test_another_tree_of_the_trace_belongs_to_its_only_session():
    assert found(("call", "gone", "s"), ("other", "gone too", None)) == {"other": "s"}
    assert found(("call", None, "s"), ("call 2", None, "t"), ("other", None, None)) == {}


def test_a_session_below_another_one_does_not_hide_it():
    places = [("root", None, None), ("outer", "root", "s"), ("inner", "outer", "t"), ("work", "inner", None)]
    assert found(*places) == {"work": "t"}


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abcdefgh"),
            st.sampled_from([None, *"abcdefgh"]),
            st.sampled_from([None, "s", "t"]),
        ),
        unique_by=lambda place: place[0],
    ).flatmap(lambda places: st.tuples(st.just(places), st.permutations(places)))
)
def test_order_changes_nothing_and_cycles_do_no_harm(case):
    places, shuffled = case
    assert found(*places) == found(*shuffled)
    assert not set(found(*places)) & {span_id for span_id, _, session in places if session}
