"""JSON in and out without altering a value."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.errors import InvalidJson
from sessions_app.json_text import DEEPEST, MessageTexts, dumps, exact, loads, parsed, storable, text_of

TEXT = st.text(
    alphabet=st.sampled_from(['"', "\\", "é", "\u2028", "\ud800", "\x00", "a", " ", "{", "]", ","])
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
MESSAGES = st.lists(st.dictionaries(TEXT, VALUES, max_size=3), max_size=6)
SPELLINGS: list[dict[str, Any]] = [
    {},
    {"separators": (",", ":")},
    {"ensure_ascii": False, "separators": (",", ":")},
    {"indent": 1},
]


@given(VALUES)
def test_what_is_written_reads_the_same(value: Any) -> None:
    assert json.loads(dumps(value)) == value
    assert loads(dumps(value)) == value
    assert "\x00" not in text_of(value)


NOT_FINITE = st.sampled_from([float("nan"), float("inf"), float("-inf")])
ODD_VALUES = st.recursive(
    st.none() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(ODD_VALUES)
def test_what_is_stored_or_passed_on_keeps_what_is_no_number(value: Any) -> None:
    assert repr(json.loads(exact(value))) == repr(value)
    assert repr(loads(text_of(value).encode())) == repr(value)


@given(NOT_FINITE)
def test_what_is_shown_is_readable_by_everybody(number: float) -> None:
    assert dumps({"a": [number]}) == b'{"a":[null]}'


@given(MESSAGES, st.sampled_from(SPELLINGS), st.sampled_from(["utf-8", "utf-16", "utf-32-be"]), st.randoms())
def test_the_text_of_a_message_is_its_own(messages: Any, spelling: Any, encoding: str, order: Any) -> None:
    body = json.dumps({"a": ["messages"], "messages": messages, "z": messages[:1]}, **spelling)
    sent = body.encode(encoding, "surrogatepass")
    texts = MessageTexts(sent, loads(sent)["messages"])
    indexes = list(range(len(messages)))
    order.shuffle(indexes)
    for index in [*range(len(messages)), *indexes]:
        text = texts.text(index)
        assert json.loads(text) == messages[index]
        assert text in body or text == text_of(messages[index])
        text.encode()


def test_a_client_s_spelling_is_kept() -> None:
    spelled = '{"n": 1.00, "e": "\\u00e9", "x": NaN, "twice": 1, "twice": 2}'
    body = ('{"messages": [' + spelled + ', {"n":1.0}], "more": [{"n":1.0}]}').encode()
    texts = MessageTexts(body, loads(body)["messages"])
    assert (texts.text(0), texts.text(1)) == (spelled, '{"n":1.0}')


def test_a_message_is_not_taken_for_another_whose_null_looks_like_its_nan() -> None:
    body = b'{"messages":[{"x":NaN},{"x":null}]}'
    texts = MessageTexts(body, loads(body)["messages"])
    assert texts.text(0) == '{"x":NaN}'
    assert texts.text(1) == '{"x":null}'


def test_the_last_of_equal_keys_is_the_one_that_counts() -> None:
    body = b'{"messages": [{"a": 1}], "mess\\u0061ges": [ {"a" : 2} ]}'
    assert MessageTexts(body, loads(body)["messages"]).text(0) == '{"a" : 2}'


def test_many_messages_are_read_in_one_go() -> None:
    messages = [{"role": "user", "content": f"{index} " + "x" * 4_000} for index in range(3_000)]
    body = dumps({"messages": messages})
    texts = MessageTexts(body, messages)
    started = time.process_time()
    assert sum(len(texts.text(index)) for index in range(len(messages))) < len(body)
    assert time.process_time() - started < 1.0


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels - 1):
        value = {"a": value} if levels % 2 else [value]
    return value


@pytest.mark.parametrize("levels", [254, 255, DEEPEST - 1, DEEPEST])
def test_nesting_that_is_written_can_be_read(levels: int) -> None:
    value = nested(levels)
    assert json.loads(dumps(value)) == value


@pytest.mark.parametrize("levels", [DEEPEST + 1, DEEPEST + 2, 900, 100_000])
def test_deeper_nesting_is_refused(levels: int) -> None:
    with pytest.raises(InvalidJson, match="nested too deeply"):
        dumps(nested(levels))


@pytest.mark.parametrize("text", ["a\x00b", "\ud800", "é", "", "\\u0000"])
def test_what_a_column_cannot_hold_is_escaped(text: str) -> None:
    held = storable(text)
    assert "\x00" not in held
    held.encode()
    assert (held == text) == (text in ("é", "", "\\u0000"))


@pytest.mark.parametrize("spelled", [json.dumps, text_of, lambda value: json.dumps(value, indent=1)])
def test_texts_are_found_in_any_order_among_many(spelled: Callable[[Any], str]) -> None:
    messages = [{"role": "user", "content": f"message {index}"} for index in range(100)]
    body = spelled({"messages": messages}).encode()
    texts = MessageTexts(body, messages)
    for index in [*reversed(range(100)), *range(0, 100, 7), 50, 3]:
        assert json.loads(texts.text(index)) == messages[index]
        assert texts.text(index).encode() in body


@pytest.mark.parametrize(
    ("text", "odd"),
    [
        ('{"a":[1,"b",null]}', False),
        ('{"a":"NaN"}', False),
        ('{"a":NaN}', True),
        ('{"a":[-Infinity]}', True),
        ('{"a":12345678901234567890,"b":"x"}', False),
        ('{"a":12345678901234567890,"b":NaN}', True),
    ],
)
def test_a_parsed_text_tells_whether_numbers_that_are_none_may_stand_in_it(text: str, odd: bool) -> None:
    assert parsed(text.encode())[1] is odd
