"""First differences: the place, both values, and the looser matcher that would have accepted the pair."""

import json

import pytest
from hypothesis import given, settings

from sessions_app.history.differences import VALUE_BYTES, first_difference, looser_matcher
from sessions_app.history.matchers.custom import CustomMatcher
from sessions_app.history.matchers.linear_form import LINEAR_FORM
from sessions_app.history.matchers.registry import BUILT_IN_MATCHERS
from tests.history.messages import assistant, call, calling, pairs, system, user

EXACT, STRICT, LOOSE, ROLE_CONTENT = BUILT_IN_MATCHERS.values()


def place(stored, replayed, matcher=STRICT):
    found = first_difference([stored], [replayed], matcher)
    return found and (found.path, found.stored, found.replayed, found.offset)


def test_equal_histories_have_none():
    path = [user("a"), assistant("b")]
    assert first_difference(path, path, STRICT) is None


def test_it_stands_at_the_first_message_that_differs():
    found = first_difference([user("a"), user("b"), user("c")], [user("a"), user("x"), user("y")], STRICT)
    assert (found.index, found.path, found.stored, found.replayed, found.offset) == (
        1,
        "content",
        '"b"',
        '"x"',
        0,
    )


def test_a_missing_message_is_shown_with_its_neighbour_s_absence():
    found = first_difference([user("a"), assistant("b")], [user("a")], STRICT)
    assert (found.index, found.path, found.replayed) == (1, "messages", None)
    assert json.loads(found.stored) == assistant("b")


def test_an_extra_message_is_shown():
    found = first_difference([user("a")], [user("a"), user("b")], STRICT)
    assert (found.index, found.path, found.stored) == (1, "messages", None)
    assert json.loads(found.replayed) == user("b")


@pytest.mark.parametrize(
    ("stored", "replayed", "expected"),
    [
        (user("abc"), user("abd"), ("content", '"abc"', '"abd"', 2)),
        (user("a"), assistant("a"), ("role", '"user"', '"assistant"', 0)),
        (assistant("a", reasoning_content="r"), assistant("a"), ("reasoning_content", '"r"', None, None)),
        (
            user("a"),
            user([{"type": "text", "text": "a"}]),
            ("content", '"a"', '[{"type":"text","text":"a"}]', None),
        ),
        (
            user([{"type": "text", "text": "ab"}, {"type": "text", "text": "c"}]),
            user([{"type": "text", "text": "ab"}, {"type": "text", "text": "d"}]),
            ("content[1].text", '"c"', '"d"', 0),
        ),
        (
            calling(call('{"a":1}')),
            calling(call('{"a":2}')),
            ("tool_calls[0].function.arguments", '"{\\"a\\":1}"', '"{\\"a\\":2}"', 5),
        ),
        (
            calling(call(), call(id="c2")),
            calling(call(), call(id="c3")),
            ("tool_calls[1].id", '"c2"', '"c3"', 1),
        ),
        (
            calling(call(), call(id="c2")),
            calling(call()),
            ("tool_calls[1]", json.dumps(call(id="c2")), None, None),
        ),
        (calling(call()), assistant(""), ("tool_calls", json.dumps([call()]), None, None)),
        (user({"a": 1}), user({"a": 2}), ("content.a", "1", "2", None)),
    ],
)
def test_the_field_and_its_values(stored, replayed, expected):
    path, before, after, offset = place(stored, replayed)
    compact = [value and json.dumps(json.loads(value)) for value in (before, after)]
    assert (path, *compact, offset) == (
        expected[0],
        *[v and json.dumps(json.loads(v)) for v in expected[1:3]],
        expected[3],
    )


def test_what_the_matcher_ignores_is_not_reported():
    stored = calling(call('{"a":1}', index=0), name="n")
    replayed = calling(call('{"a": 1.0}', index=3), call())
    assert place(stored, replayed, LOOSE)[0] == "tool_calls[1]"
    assert place(stored, {**replayed, "content": "x"}, ROLE_CONTENT)[0] == "content"


def test_types_are_reported_where_they_count():
    assert place(user([1, 2]), user([1, 2.0]), EXACT) == ("content[1]", "2", "2.0", None)
    assert place(user([1, 2]), user([1, 2.0]), STRICT) is None


def test_the_linear_form_is_asked_like_any_other():
    stored = calling(call('{"a":1}'), content="x")
    replayed = {**calling(call('{"a":1.0}')), "content": [{"type": "text", "text": "x"}]}
    assert place(stored, replayed, LINEAR_FORM)[0] == "tool_calls[0].function.arguments"


def test_fields_that_are_only_refused_together_are_shown_as_the_whole_above_them():
    stored = calling(call({"a": 1}), call('{"a":1}'))
    replayed = calling(call({"a": True}), call('{"a": 1}'))
    assert place(stored, replayed, LOOSE)[0] == "tool_calls"


def test_a_custom_matcher_is_asked_too():
    matcher = CustomMatcher("a.by_name", lambda stored, replayed: stored.get("name") == replayed.get("name"))
    assert place({**user("a"), "name": "n"}, {**user("b"), "name": "m"}, matcher)[0] == "name"


def test_a_custom_matcher_that_fails_on_made_up_messages_refuses_them():
    def touchy(stored, replayed):
        return stored["content"].lower() == replayed["content"].lower()

    found = place(
        {"role": "user", "content": "A"}, {"role": "user", "content": None}, CustomMatcher("a.touchy", touchy)
    )
    assert found == ("content", '"A"', "null", None)


def test_a_long_text_is_shown_from_shortly_before_the_difference():
    head = "h" * 10_000
    path, before, after, offset = place(
        system(f"{head}aaa111;" + "t" * 5000), system(f"{head}bbb222;" + "t" * 5000)
    )
    assert (path, offset) == ("content", 10_000)
    for text, mark in ((before, "aaa111;"), (after, "bbb222;")):
        assert text.startswith("…")
        assert text.endswith("…")
        assert mark in text
        assert len(text.encode()) <= VALUE_BYTES


def test_a_long_value_is_cut_at_a_character():
    before = place(user([{"type": "image", "data": "é" * 5000}]), user("b"))[1]
    assert before.endswith("é…")
    assert len(before.encode()) <= VALUE_BYTES


def test_values_can_be_stored_as_text():
    before = place(user("\ud800\x00"), user("b"))[1]
    assert before == '"\\ud800\\u0000"'
    before.encode()


@pytest.mark.parametrize(
    "matcher", [*BUILT_IN_MATCHERS.values(), LINEAR_FORM], ids=lambda matcher: matcher.name
)
@settings(max_examples=200, deadline=None)
@given(pair=pairs)
def test_there_is_a_difference_exactly_when_the_matcher_refuses(matcher, pair):
    found = first_difference([pair[0]], [pair[1]], matcher)
    assert (found is None) is matcher.matches(*pair)
    if found:
        assert all(len(value.encode()) <= VALUE_BYTES for value in (found.stored, found.replayed) if value)


@pytest.mark.parametrize(
    ("stored", "replayed", "matcher", "expected"),
    [
        (calling(call('{"a":1}')), calling(call('{"a": 1}')), "strict", "loose_tool_call"),
        (calling(call('{"a":1}')), calling(call('{"a": 1}')), "exact", "loose_tool_call"),
        (calling(call('{"a":1}')), calling(call('{"a":2}')), "strict", "role_content_only"),
        (assistant("a", reasoning_content="r"), assistant("a"), "loose_tool_call", "role_content_only"),
        (user(1), user(1.0), "exact", "strict"),
        (user("a"), user("b"), "exact", None),
        (assistant("a", reasoning_content="r"), assistant("a"), "role_content_only", None),
        (user("a"), user("a"), "package.custom", "exact"),
        (calling(call('{"a":1}')), calling(call('{"a":1.0}')), "linear_form", "loose_tool_call"),
    ],
)
def test_the_looser_matcher_is_the_tightest_that_accepts(stored, replayed, matcher, expected):
    assert looser_matcher(stored, replayed, matcher) == expected
