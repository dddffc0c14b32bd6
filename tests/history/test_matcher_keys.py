"""A key stands for its predicate: equal exactly when the predicate accepts, for every pair that has keys."""

import json
import math
import pickle

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sessions_app.history.matchers.linear_form import LINEAR_FORM
from sessions_app.history.matchers.registry import BUILT_IN_MATCHERS
from tests.history.messages import (
    NUMBERS,
    ODD_SPELLINGS,
    TEXTS,
    argument_messages,
    assistant,
    call,
    call_pairs,
    calling,
    messages,
    pairs,
    user,
)

MATCHERS = [*BUILT_IN_MATCHERS.values(), LINEAR_FORM]
each_matcher = pytest.mark.parametrize("matcher", MATCHERS, ids=lambda matcher: matcher.name)
many = settings(max_examples=400, deadline=None)


def parsed_again(value):
    """An equal value that shares nothing, not even a NaN."""
    return pickle.loads(pickle.dumps(value))


def check(matcher, pair):
    stored, replayed = pair[0], parsed_again(pair[1])
    keys = matcher.key(stored), matcher.key(replayed)
    if None not in keys:
        assert (keys[0] == keys[1]) is matcher.matches(stored, replayed)


@each_matcher
@many
@given(pair=pairs)
def test_key_equality_is_the_predicate(matcher, pair):
    check(matcher, pair)


@each_matcher
@many
@given(pair=call_pairs)
def test_key_equality_is_the_predicate_for_tool_calls(matcher, pair):
    check(matcher, pair)


@each_matcher
def test_key_equality_is_the_predicate_for_all_pairs_of_odd_values(matcher):
    values = [*NUMBERS, *TEXTS, True, False, None, [], {}, [1], [True], {"a": 1}, {"a": True}]
    odd = [assistant(value) for value in values]
    odd += [calling(call(value)) for value in [*values, *ODD_SPELLINGS]]
    odd += [calling(call(f'{{"a":{json.dumps(value)}}}')) for value in values]
    odd += [calling(call({"a": value})) for value in values] + [{}, {"role": "user"}]
    for stored in odd:
        for replayed in odd:
            check(matcher, (stored, replayed))


@each_matcher
@many
@given(message=messages)
@example(message=user("\ud800"))
@example(message=calling(call({"a": 10**5000})))
def test_a_key_is_16_bytes_and_belongs_to_equal_messages(matcher, message):
    key = matcher.key(message)
    twin = parsed_again(message)
    assert key is None or (len(key) == 16 and matcher.key(twin) == key and matcher.matches(message, twin))


@many
@given(one=argument_messages, other=argument_messages, third=argument_messages)
def test_loose_tool_call_is_transitive_on_messages_with_keys(one, other, third):
    loose = BUILT_IN_MATCHERS["loose_tool_call"]
    keyed = all(loose.key(message) is not None for message in (one, other, third))
    if keyed and loose.matches(one, other) and loose.matches(other, third):
        assert loose.matches(one, third)


def test_loose_tool_call_refuses_a_key_where_its_rule_is_no_equivalence():
    loose = BUILT_IN_MATCHERS["loose_tool_call"]
    one, true, text = calling(call({"a": 1})), calling(call({"a": True})), calling(call('{"a":1}'))
    assert loose.matches(true, one)
    assert loose.matches(one, text)
    assert not loose.matches(true, text)
    assert loose.key(one) is None
    assert loose.key(true) is None
    assert loose.key(text) is not None


@each_matcher
@given(value=st.sampled_from([math.nan, [math.nan], {"a": [math.nan]}]))
def test_nan_has_no_key_because_it_equals_nothing(matcher, value):
    assert matcher.key(assistant(value)) is None
    assert not matcher.matches(assistant(value), parsed_again(assistant(value)))


@each_matcher
def test_plain_messages_always_have_keys(matcher):
    for message in (
        user("hello"),
        assistant(None),
        assistant("", tool_calls=[call('{"a": 1}')]),
        user("\ud800"),
    ):
        assert matcher.key(message) is not None


@each_matcher
def test_fields_cannot_imitate_each_other(matcher):
    spread = [
        user("a"),
        {"role": "user", "content": "", "reasoning_content": "a"},
        assistant("a"),
        assistant("zz"),
    ]
    keys = [matcher.key(message) for message in spread]
    distinct = {key for key, message in zip(keys, spread, strict=True) if message.get("content")}
    assert len(distinct) == 3
