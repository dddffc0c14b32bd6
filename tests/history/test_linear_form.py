"""The form policy `linear` compares: spelling is free, types and content are not."""

import pytest

from sessions_app.history.matchers.linear_form import LINEAR_FORM, uses_linear_form
from tests.history.messages import assistant, call, calling, system, user


def text(value, **fields):
    return {"type": "text", "text": value, **fields}


IMAGE = {"type": "image_url", "image_url": {"url": "u", "detail": 1}}
SAME = {
    "developer is system": ({"role": "developer", "content": "a"}, system("a")),
    "text parts are joined by a newline": (user([text("a"), text("b")]), user("a\nb")),
    "all kinds of text": (
        user([{"type": "input_text", "text": "a"}, {"type": "output_text", "text": "b"}]),
        user("a\nb"),
    ),
    "empty parts are dropped": (user([text(""), text("a")]), user("a")),
    "no content in any spelling": (assistant(None), {"role": "assistant", "content": []}),
    "only empty parts": (user([text("")]), user("")),
    "cache markers on text": (user([text("a", cache_control={"type": "ephemeral"})]), user("a")),
    "cache markers on other parts": (
        user([IMAGE]),
        user([{**IMAGE, "cache_control": {"type": "ephemeral"}}]),
    ),
    "key order in other parts": (user([IMAGE]), user([dict(reversed(IMAGE.items()))])),
    "ids and names of tool results": (
        {"role": "tool", "tool_call_id": "c1", "name": "f", "content": "r"},
        {"role": "tool", "tool_call_id": "c2", "content": "r"},
    ),
    "ids, types and positions of calls": (
        calling(call()),
        calling({"index": 3, "function": call()["function"]}),
    ),
    "arguments as text and as object": (calling(call('{"a":"é"}')), calling(call({"a": "\u00e9"}))),
    "key order and blanks of arguments": (
        calling(call('{"a":1,"b":2}')),
        calling(call('{ "b": 2, "a": 1 }')),
    ),
    "spellings of one float": (calling(call('{"a":1.0}')), calling(call('{"a":1.00}'))),
    "no arguments in any spelling": (calling(call("")), calling(call({}))),
    "identical malformed arguments": (calling(call('{"a":')), calling(call('{"a":', id="c2"))),
    "no reasoning in any spelling": (
        assistant("a", reasoning_content=None),
        assistant("a", reasoning_content=""),
    ),
    "unknown fields": (assistant("a", refusal=None, annotations=[]), assistant("a")),
}
DIFFERENT = {
    "role": (user("a"), assistant("a")),
    "text": (user("a"), user("a ")),
    "reasoning dropped": (assistant("a", reasoning_content="r"), assistant("a")),
    "integer and float in arguments": (calling(call('{"a":1}')), calling(call('{"a":1.0}'))),
    "integer and bool in arguments": (calling(call('{"a":1}')), calling(call('{"a":true}'))),
    "integer and bool in argument objects": (calling(call({"a": 1})), calling(call({"a": True}))),
    "large integers": (calling(call('{"a":9007199254740993}')), calling(call('{"a":9007199254740992}'))),
    "malformed arguments reformatted": (calling(call('{"a":')), calling(call('{"a": '))),
    "duplicate keys": (calling(call('{"a":1,"a":1}')), calling(call('{"a":1}'))),
    "name of the function": (calling(call()), calling({"function": {"name": "g", "arguments": "{}"}})),
    "order of calls": (calling(call("{}"), call('{"a":1}')), calling(call('{"a":1}'), call("{}"))),
    "a call dropped": (calling(call(), call()), calling(call())),
    "other parts": (user([IMAGE]), user([{**IMAGE, "image_url": {"url": "v"}}])),
    "types in other parts": (user([IMAGE]), user([{**IMAGE, "image_url": {"url": "u", "detail": True}}])),
    "other parts dropped": (user([text("a"), IMAGE]), user("a")),
    "place of other parts": (user([text("a"), IMAGE, text("b")]), user([text("a"), text("b"), IMAGE])),
    "unknown roles by every field": ({"role": "x", "name": "n"}, {"role": "x", "name": "m"}),
    "unknown and known role": ({"role": "function", "content": "a"}, {"role": "tool", "content": "a"}),
    "odd calls by their content": (calling({"custom": {"input": "a"}}), calling({"custom": {"input": "b"}})),
}


@pytest.mark.parametrize("pair", SAME.values(), ids=SAME)
def test_same(pair):
    assert LINEAR_FORM.matches(*pair)
    assert LINEAR_FORM.key(pair[0]) == LINEAR_FORM.key(pair[1]) is not None


@pytest.mark.parametrize("pair", DIFFERENT.values(), ids=DIFFERENT)
def test_different(pair):
    assert not LINEAR_FORM.matches(*pair)
    assert LINEAR_FORM.key(pair[0]) != LINEAR_FORM.key(pair[1])


@pytest.mark.parametrize(
    ("policy", "healing", "canonical"),
    [
        ("linear", True, True),
        ("linear", False, True),
        ("tree", False, True),
        ("tree", True, False),
        ("rollback", False, False),
    ],
)
def test_linear_and_an_unhealed_tree_compare_this_form(policy: str, healing: bool, canonical: bool) -> None:
    assert uses_linear_form(policy, healing=healing) is canonical
