"""Parts of a JSON text as they are spelled."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.json_spans import elements, member, readable, respaced

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
SPELLINGS: list[dict[str, Any]] = [
    {},
    {"separators": (",", ":")},
    {"ensure_ascii": False, "separators": (",", ":")},
    {"indent": 1},
]


@given(VALUES, st.sampled_from(SPELLINGS))
def test_all_spellings_of_a_value_have_one_form(value: Any, spelling: Any) -> None:
    assert respaced(json.dumps(value, **spelling)) == json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ('{"x":0.12345678901234567890,"n":123456789012345678901234567890}',) * 2,
        ('{"a":1e2,"b":-0,"c":1.50,"d":1E400}',) * 2,
        ('{ "a":1,\n"a":2,"b":[NaN,{}] }', '{"a": 1, "a": 2, "b": [NaN, {}]}'),
        ('{"s":"\\ud800","t":"\\u00e9 \\" \\\\"}', '{"s": "\\ud800", "t": "é \\" \\\\"}'),
    ],
)
def test_numbers_keys_and_order_stay(sent: str, kept: str) -> None:
    spaced = kept if ": " in kept else kept.replace(",", ", ").replace(":", ": ")
    assert respaced(sent) == spaced


@given(st.dictionaries(TEXT, VALUES, max_size=4), st.sampled_from(SPELLINGS))
def test_members_and_elements_are_found(value: dict[str, Any], spelling: Any) -> None:
    text = json.dumps(value, **spelling)
    for name, inner in value.items():
        assert json.loads(member(text, name) or "") == inner
    assert member(text, "no such name") is None
    listed = json.dumps([*value.values()], **spelling)
    assert [json.loads(each) for each in elements(listed)] == [*value.values()]


def test_the_last_of_equal_keys_counts() -> None:
    assert member('{"a":1,"b":2,"\\u0061": 3 }', "a") == "3"
    assert elements(None) == elements('{"a":1}') == []


def test_a_lone_surrogate_stays_escaped() -> None:
    assert (readable("é"), readable("\ud800é")) == ('"é"', '"\\ud800\\u00e9"')
