"""Placeholders become numbers; each text is translated once."""

import pytest

from sessions_app.store.statements import numbered


@pytest.mark.parametrize(
    ("query", "text", "names"),
    [
        ("SELECT 1", b"SELECT 1", ()),
        ("SELECT %s, %s", b"SELECT $1, $2", ()),
        ("SELECT %(a)s, %(b)s::int, %(a)s", b"SELECT $1, $2::int, $1", ("a", "b")),
        ("SELECT 'x' LIKE 'x%%' AND %(a)s", b"SELECT 'x' LIKE 'x%' AND $1", ("a",)),
    ],
)
def test_placeholders_are_numbered_in_the_order_of_their_first_use(
    query: str, text: bytes, names: tuple[str, ...]
) -> None:
    statement = numbered(query)
    assert statement.text == text
    assert statement.names == names


def test_values_follow_the_numbers() -> None:
    assert numbered("SELECT %(b)s, %(a)s, %(b)s").values({"a": 1, "b": 2, "c": 3}) == [2, 1]
    assert numbered("SELECT %s").values((7,)) == (7,)


def test_a_missing_parameter_is_an_error() -> None:
    with pytest.raises(KeyError):
        numbered("SELECT %(a)s").values({"b": 1})


def test_a_text_is_translated_once() -> None:
    assert numbered("SELECT %(once)s") is numbered("SELECT %(once)s")
