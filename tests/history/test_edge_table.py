"""The edge-case table of the reference matchers, row by row, and what `exact` makes of each."""

import pytest

from sessions_app.history.matchers.registry import BUILT_IN_MATCHERS
from tests.history.messages import assistant, call, calling, user

ABSENT = object()


def with_field(name, value):
    return assistant("x") if value is ABSENT else assistant("x", **{name: value})


def among(values, of):
    return [(of(one), of(other)) for one in values for other in values]


def content(value):
    return {"role": "user"} if value is ABSENT else user(value)


def changed_call(**fields):
    return calling({**call(), **fields})


def without(name):
    return calling({key: value for key, value in call().items() if key != name})


def args(value):
    return calling(call(value))


def args_missing():
    return calling({**call(), "function": {"name": "f"}})


def function(**fields):
    return calling({**call(), "function": {**call()["function"], **fields}})


EMPTY_CONTENT = [(content(""), content(value)) for value in (None, [], ABSENT)]
NOT_EMPTY_CONTENT = [(content(""), content(value)) for value in ({}, 0, False, " ")]
PYTHON_EQUAL = [(content(1), content(True)), (content(1), content(1.0)), (content(0), content(False))]
CONTENT_SPELLINGS = [
    (content("a"), content("a\n")),
    (content("a"), content([{"type": "text", "text": "a"}])),
    (content("\u00e9"), content("e\u0301")),
]
NO_REASONING = among([None, "", ABSENT], lambda value: with_field("reasoning_content", value))
REASONING_DROPPED = [(with_field("reasoning_content", "r"), with_field("reasoning_content", ABSENT))]
NO_CALLS = among([None, [], "", ABSENT], lambda value: with_field("tool_calls", value))
CALL_INDEX = [(calling(call(index=0)), calling(call(index=1))), (calling(call(index=0)), calling(call()))]
INDEX_IN_FUNCTION = [(function(index=0), function(index=1)), (function(index=0), function())]
CALL_FIELDS = [
    (calling(call()), changed_call(id="c2")),
    (calling(call()), without("id")),
    (changed_call(id=None), without("id")),
    (changed_call(id=None), changed_call(id="")),
    (calling(call()), without("type")),
    (calling(call()), changed_call(type="custom")),
    (calling(call()), function(name="g")),
    (changed_call(x=1), calling(call())),
    (changed_call(x=1), changed_call(x=2)),
]
UNKNOWN_FIELD_TYPES = [(calling(call('{"a":1}', x=1)), calling(call('{"a": 1}', x=True)))]
CALL_LISTS = [
    (calling(call(), call(id="c2")), calling(call(id="c2"), call())),
    (calling(call(), call(id="c2")), calling(call())),
]
RESPELLED = [
    (args('{"a":1,"b":2}'), args('{"b":2,"a":1}')),
    (args('{"a":1}'), args('{ "a" : 1 }')),
    (args('{"a":1}'), args({"a": 1})),
    (args('{"a":"é"}'), args('{"a":"\\u00e9"}')),
    (args('{"a":1}'), args('{"a":1.0}')),
    (args('{"a":0}'), args('{"a":-0}')),
]
EMPTY_SPELLINGS = [None, "", {}, "{}", "{ }", " {} "]
EMPTY_ARGS = [pair for pair in among(EMPTY_SPELLINGS, args) if pair[0] != pair[1]]
ARGS_MISSING = [(args_missing(), args(value)) for value in EMPTY_SPELLINGS]
ARGS_NOT_EMPTY = [(args("{}"), args(value)) for value in (" ", [], "null", False, 0)]
ARGS_TYPES = [
    (args('{"a":1}'), args('{"a":true}')),
    (args('{"a":0}'), args('{"a":false}')),
    (args('{"a":1}'), args('{"a":"1"}')),
    (args('{"a":null}'), args("{}")),
    (args('{"a":[1,2]}'), args('{"a":[2,1]}')),
]
OBJECT_TYPES = [(args({"a": 1}), args({"a": True})), (args([1]), args([True])), (args(1), args(True))]
UNREADABLE = ['{"a":1,"a":1}', '{"a":NaN}', '{"a":Infinity}', '{"a":-Infinity}', '{"a":', "[1]", "1"]
UNREADABLE_RESPELLED = [(args(text), args(f" {text}")) for text in UNREADABLE]
UNREADABLE_IDENTICAL = [(args(text), args(text)) for text in UNREADABLE]

TABLE = {  # row: (pairs, strict, loose_tool_call, role_content_only, exact)
    "content empty in any spelling": (EMPTY_CONTENT, True, True, True, True),
    "content that only looks empty": (NOT_EMPTY_CONTENT, False, False, False, False),
    "content equal to Python only": (PYTHON_EQUAL, True, True, True, False),
    "content in another spelling": (CONTENT_SPELLINGS, False, False, False, False),
    "no reasoning in any spelling": (NO_REASONING, True, True, True, True),
    "reasoning dropped": (REASONING_DROPPED, False, False, True, False),
    "no tool calls in any spelling": (NO_CALLS, True, True, True, True),
    "index of a call": (CALL_INDEX, True, True, True, True),
    "index inside function": (INDEX_IN_FUNCTION, False, False, True, False),
    "field of a call": (CALL_FIELDS, False, False, True, False),
    "unknown call field 1 against true": (UNKNOWN_FIELD_TYPES, False, True, True, False),
    "calls reordered or dropped": (CALL_LISTS, False, False, True, False),
    "arguments respelled": (RESPELLED, False, True, True, False),
    "empty arguments among each other": (EMPTY_ARGS, False, True, True, False),
    "arguments missing": (ARGS_MISSING, False, False, True, False),
    "arguments that only look empty": (ARGS_NOT_EMPTY, False, False, True, False),
    "types inside argument strings": (ARGS_TYPES, False, False, True, False),
    "types inside argument objects": (OBJECT_TYPES, True, True, True, False),
    "unreadable arguments reformatted": (UNREADABLE_RESPELLED, False, False, True, False),
    "unreadable arguments identical": (UNREADABLE_IDENTICAL, True, True, True, True),
}
NAMES = ("strict", "loose_tool_call", "role_content_only", "exact")
ROWS = [
    pytest.param(pair, name, expected, id=f"{row}-{number}-{name}")
    for row, (pairs, *verdicts) in TABLE.items()
    for number, pair in enumerate(pairs)
    for name, expected in zip(NAMES, verdicts, strict=True)
]


@pytest.mark.parametrize(("pair", "name", "expected"), ROWS)
def test_row(pair, name, expected):
    matcher = BUILT_IN_MATCHERS[name]
    assert matcher.matches(*pair) is expected
    assert matcher.matches(*reversed(pair)) is expected


@pytest.mark.parametrize(("pair", "name", "expected"), ROWS)
def test_key_of_row(pair, name, expected):
    keys = [BUILT_IN_MATCHERS[name].key(message) for message in pair]
    assert None in keys or (keys[0] == keys[1]) is expected
