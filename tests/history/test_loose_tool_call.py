"""`loose_tool_call`: arguments are equal as typed JSON objects, digit by digit; looseness never raises."""

import json

import pytest

from sessions_app.history.matchers.registry import BUILT_IN_MATCHERS
from tests.history.messages import assistant, call, calling

LOOSE = BUILT_IN_MATCHERS["loose_tool_call"]


def same_arguments(stored, replayed):
    one, other = calling(call(stored)), calling(call(replayed))
    keys = LOOSE.key(one), LOOSE.key(other)
    verdict = LOOSE.matches(one, other)
    assert None in keys or (keys[0] == keys[1]) is verdict
    return verdict


@pytest.mark.parametrize(
    ("replayed", "expected"),
    [
        ('{"x":true}', False),
        ('{"x":1.0}', True),
        ('{"x":"1"}', False),
        ('{ "x" : 1 }', True),
        ('{"x":1,"x":1}', False),
        ('{"x":NaN}', False),
        ("[1]", False),
        ("not json", False),
        ('{"x":1e0}', True),
        ('{"x":10E-1}', True),
        ('{"x":0.1e+1}', True),
    ],
)
def test_a_stored_one(replayed, expected):
    assert same_arguments('{"x":1}', replayed) is expected


@pytest.mark.parametrize(
    ("stored", "replayed", "expected"),
    [
        ('{"id":9007199254740993}', '{"id":9007199254740992}', False),
        ('{"id":9007199254740993}', '{"id": 9007199254740993}', True),
        ('{"id":9007199254740993}', '{"id":9007199254740993.0}', True),
        ('{"a":0.1}', '{"a":0.10}', True),
        ('{"a":0.1}', '{"a":0.10000000000000001}', False),
        ('{"a":1e999}', '{"a":10e998}', True),
        ('{"a":1e999}', '{"a":1e1000}', False),
        ('{"a":0}', '{"a":0e5}', True),
        ('{"a":-0.0}', '{"a":0}', True),
        (f'{{"a":{"9" * 5000}}}', f'{{"a": {"9" * 5000}}}', True),
        (f'{{"a":1{"0" * 5000}}}', '{"a":1e5000}', True),
        ('{"a":1e99999999999999999999}', '{"a": 1e99999999999999999999}', False),
        ('{"a":1e99999999999999999999}', '{"a":1e99999999999999999999}', True),
        ('{"a":"\\ud83d\\ude00"}', '{"a":"😀"}', True),
        ('{"a":"\\ud800"}', '{"a": "\\ud800"}', True),
        ('{"a":"\\ud800"}', '{"a":"\\ud801"}', False),
        ('{"a":"\t"}', '{"a": "\t"}', False),
        ({"a": 0.1}, '{"a":0.1}', True),
        ({"a": 2**60}, '{"a":1152921504606846976}', True),
        ({"a": float(2**60)}, '{"a":1152921504606846976}', False),
        ({"a": float("inf")}, '{"a":1e999}', False),
    ],
)
def test_numbers_and_texts_are_compared_as_written(stored, replayed, expected):
    assert same_arguments(stored, replayed) is expected


@pytest.mark.parametrize("depth", [900, 5000, 200_000])
def test_nesting_too_deep_to_read_matches_only_itself(depth):
    text = '{"x":' + "[" * depth + "]" * depth + "}"
    assert same_arguments(text, text)
    assert not same_arguments(text, text.replace(":", ": "))


def test_nesting_that_can_be_read_may_be_respelled():
    text = '{"x":' + "[" * 300 + "]" * 300 + "}"
    assert same_arguments(text, text.replace(":", ": "))


def test_values_nested_too_deep_to_read_are_compared_all_the_same():
    deep = []
    for _ in range(5000):
        deep = [deep]
    for matcher in BUILT_IN_MATCHERS.values():
        assert matcher.matches(assistant(deep), assistant([deep][0]))
        assert not matcher.matches(assistant(deep), assistant([deep]))
        assert matcher.key(assistant(deep)) is None


def test_malformed_arguments_replayed_as_they_were_match_and_have_a_key():
    message = assistant(None, tool_calls=[call('{"path": ')])
    replay = json.loads(json.dumps({**message, "content": ""}))
    assert LOOSE.matches(message, replay)
    assert LOOSE.key(message) == LOOSE.key(replay) is not None


def test_one_call_by_each_rule_does_not_match_as_a_whole():
    stored = calling(call({"a": 1}), call('{"a":1}'))
    replayed = calling(call({"a": True}), call('{"a": 1}'))
    assert not LOOSE.matches(stored, replayed)
