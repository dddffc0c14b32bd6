"""Causes, one situation each, and the order in which the rules decide."""

import pytest
from hypothesis import given, settings

from sessions_app.history.causes import Cause
from sessions_app.history.classify import classify
from sessions_app.history.matchers.linear_form import LINEAR_FORM
from sessions_app.history.matchers.registry import BUILT_IN_MATCHERS
from sessions_app.history.walk import match_length
from tests.history.messages import assistant, call, calling, pairs, system, user

STRICT, LOOSE = BUILT_IN_MATCHERS["strict"], BUILT_IN_MATCHERS["loose_tool_call"]

ARGS = '{"pattern":"x","path":"a"}'
CALL = calling(call(ARGS), reasoning_content="think")
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "1 match"}
PATH = [
    system("coder"),
    user("q1"),
    CALL,
    RESULT,
    assistant("found", reasoning_content="more"),
    user("q2"),
    assistant("r2"),
]


def cause(replayed, stored=PATH, matcher=STRICT):
    return classify(stored, replayed, matcher, match_length(stored, replayed, matcher))


def edited(at, message):
    return [*PATH[:at], message, *PATH[at + 1 :], user("next")]


def test_the_same_request_after_its_reply_is_a_retry():
    assert cause(PATH[:-1]) is Cause.RETRY
    assert cause([user("hello")], [user("hello"), assistant("ab")]) is Cause.RETRY


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_a_prefix_with_more_than_a_reply_left_is_a_shorter_history(length):
    assert cause(PATH[:length]) is Cause.HISTORY_SHORTER


def test_a_whole_path_with_nothing_new_is_a_shorter_history():
    assert cause(PATH) is Cause.HISTORY_SHORTER


@pytest.mark.parametrize(
    ("at", "message", "expected"),
    [
        (1, user("q1 edited"), Cause.MESSAGE_EDITED),
        (3, {**RESULT, "content": "2 matches"}, Cause.MESSAGE_EDITED),
        (4, assistant("lost", reasoning_content="more"), Cause.ASSISTANT_EDITED),
        (2, calling(call('{"path":"b"}'), reasoning_content="think"), Cause.ASSISTANT_EDITED),
        (2, calling(call(ARGS, id="c9"), reasoning_content="think"), Cause.ASSISTANT_EDITED),
        (
            2,
            calling(call('{"path": "a", "pattern": "x"}'), reasoning_content="think"),
            Cause.TOOL_ARGUMENTS_SPELLING,
        ),
        (4, assistant("found"), Cause.REASONING_DROPPED),
        (4, assistant("found", reasoning_content=""), Cause.REASONING_DROPPED),
        (2, calling(call('{"path": "a", "pattern": "x"}')), Cause.REASONING_DROPPED),
        (4, assistant("found", reasoning_content="other"), Cause.ASSISTANT_EDITED),
        (4, assistant("found\n", reasoning_content="more"), Cause.CONTENT_BLANK_DIFFERENCE),
        (4, assistant(" found"), Cause.REASONING_DROPPED),
        (3, {**RESULT, "content": "1  match"}, Cause.CONTENT_BLANK_DIFFERENCE),
        (3, {**RESULT, "role": "user"}, Cause.ROLE_CHANGED),
        (0, {"role": "developer", "content": "coder"}, Cause.ROLE_CHANGED),
        (0, system("another"), Cause.SYSTEM_CHANGED),
    ],
)
def test_one_message_of_a_long_replay_changed(at, message, expected):
    assert cause(edited(at, message)) is expected


def test_the_same_changes_are_seen_when_nothing_follows():
    assert cause([*PATH[:4], assistant("found")]) is Cause.REASONING_DROPPED
    assert cause([*PATH[:5], user("q2 edited")]) is Cause.MESSAGE_EDITED


def test_under_loose_tool_call_other_arguments_are_an_edit():
    assert cause(edited(2, calling(call('{"path":"b"}'), reasoning_content="think")), matcher=LOOSE) is (
        Cause.ASSISTANT_EDITED
    )


def test_under_the_linear_form_a_float_for_an_integer_is_a_spelling():
    stored = [user("a"), calling(call('{"a":1}'))]
    replayed = [user("a"), calling(call('{"a":1.0}', id="other")), RESULT]
    assert cause(replayed, stored, LINEAR_FORM) is Cause.TOOL_ARGUMENTS_SPELLING


def test_what_the_matcher_ignores_is_no_cause():
    stored = [user("a"), assistant("b", reasoning_content="r"), user("c")]
    replayed = [user("a"), assistant("b"), assistant("c")]
    assert cause(replayed, stored, BUILT_IN_MATCHERS["role_content_only"]) is Cause.ROLE_CHANGED


def test_a_removed_message_is_seen_where_the_rest_goes_on():
    assert cause([*PATH[:3], *PATH[4:]]) is Cause.MESSAGE_REMOVED
    assert cause([*PATH[:2], *PATH[5:], user("next")]) is Cause.MESSAGE_REMOVED


def test_an_inserted_message_is_seen_where_the_rest_goes_on():
    assert cause([*PATH[:3], user("reminder"), *PATH[3:]]) is Cause.MESSAGE_INSERTED
    assert cause([*PATH[:3], system("a"), user("b"), *PATH[3:]]) is Cause.MESSAGE_INSERTED


def test_a_reply_dropped_for_a_user_message_is_a_removed_message():
    assert cause([*PATH[:4], user("Tool call error")]) is Cause.MESSAGE_REMOVED


def test_a_foreign_reply_in_place_of_a_user_message_is_an_inserted_message():
    assert cause([*PATH[:5], assistant("foreign"), user("x")]) is Cause.MESSAGE_INSERTED


@pytest.mark.parametrize(
    "head",
    [[], [system("other")], [system("coder"), system("and more")], [{"role": "developer", "content": "x"}]],
)
def test_a_conversation_that_goes_on_below_another_system_prompt(head):
    assert cause([*head, *PATH[1:], user("next")]) is Cause.SYSTEM_CHANGED


@pytest.mark.parametrize(
    "reply", [calling(call('{"path": "a", "pattern": "x"}'), reasoning_content="think"), calling(call(ARGS))]
)
def test_a_reply_respelled_below_another_system_prompt_is_no_unrelated_history(reply):
    """Coding agents change a checksum in the system prompt and print arguments anew in one request."""
    assert cause([system("other"), PATH[1], reply, RESULT]) is Cause.SYSTEM_CHANGED


def test_another_reply_below_another_system_prompt_is_an_unrelated_history():
    assert cause([system("other"), PATH[1], assistant("different"), user("x")]) is Cause.UNRELATED_HISTORY


@pytest.mark.parametrize(
    "replayed",
    [
        [system("child"), user("do x")],
        [system("coder"), user("summary of the conversation so far")],
        [user("do x")],
        [system("child")],
    ],
)
def test_nothing_shared_but_a_system_prompt_is_unrelated(replayed):
    assert cause(replayed) is Cause.UNRELATED_HISTORY


def test_a_first_message_that_changes_while_the_rest_stays_was_edited():
    stored, replayed = [user("at 10:00"), *PATH[2:]], [user("at 10:01"), *PATH[2:], user("next")]
    assert cause(replayed, stored) is Cause.MESSAGE_EDITED


def test_a_branch_beside_the_path_given_is_an_insertion():
    assert cause([*PATH, user("next")]) is Cause.MESSAGE_INSERTED


@settings(max_examples=300, deadline=None)
@given(pair=pairs, other=pairs)
def test_every_divergence_has_a_cause_and_always_the_same(pair, other):
    stored, replayed = [user("q"), pair[0], other[0]], [user("q"), pair[1], other[1]]
    for matcher in (*BUILT_IN_MATCHERS.values(), LINEAR_FORM):
        first = cause(replayed, stored, matcher)
        assert isinstance(first, Cause)
        assert cause(replayed, stored, matcher) is first
