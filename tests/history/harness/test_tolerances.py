"""Each tolerance: what it lets pass, what it does not, and that it leaves other messages alone."""

import pytest
from hypothesis import given, settings

from sessions_app.history.harness.matcher import HarnessMatcher
from sessions_app.history.harness.profiles import HarnessProfile
from sessions_app.history.harness.tolerances import TOLERANCES, cut_pattern, without_reminders
from sessions_app.history.matchers.exact import Exact
from tests.history.messages import assistant, call, calling, messages, system, user

HEADER = "x-anthropic-billing-header: cc_version=2.1.175.{}; cc_entrypoint=cli; cch={};"
REMINDER = "<system-reminder>\nToday is {}\n</system-reminder>"


def text(value, **fields):
    return {"type": "text", "text": value, **fields}


def marked(value):
    return text(value, cache_control={"type": "ephemeral"})


def billing(version, checksum, glue):
    return HEADER.format(version, checksum) + glue + "You are a coder."


FIRST_HEADER, SECOND_HEADER = text(HEADER.format("a", "b")), text(HEADER.format("c", "d"))
TOLD = f"Calling tools:\n{[call()]!r}"
RUN = "Calling tools:\n" + repr(
    [{"id": "c", "function": {"name": "python_interpreter", "arguments": "x = 1"}}]
)
TOLERATED = {
    "billing-header": [
        (system(billing("0a1", "aaaaa", "\n")), system(billing("f3c", "bbbbb", "\n"))),
        (system(billing("0a1", "aaaaa", "\n\n")), system("You are a coder.")),
        (system(billing("0a1", "aaaaa", "")), system("You are a coder.")),
        (
            system([text(HEADER.format("a", "b")), text("You.")]),
            system([text(HEADER.format("c", "d")), text("You.")]),
        ),
        (system([text(HEADER.format("a", "b")), text("You.")]), system([text("You.")])),
    ],
    "system-reminders": [
        (user(f"do it\n{REMINDER.format(1)}\n"), user(f"do it\n{REMINDER.format(2)}")),
        (user(f"{REMINDER.format(1)}\n\ndo it"), user("do it")),
        (user([text("do it"), text(REMINDER.format(1))]), user([text("do it")])),
        ({"role": "tool", "content": f"42\n\n{REMINDER.format(1)}\n"}, {"role": "tool", "content": "42"}),
        (user(f"a\n{REMINDER.format(1)}\nb"), user("a\nb")),
        (user(f"a\n{REMINDER.format(1)}\n{REMINDER.format(2)} b"), user(f"a {REMINDER.format(3)}\n\nb")),
    ],
    "cache-control": [(user([marked("a"), text("b")]), user([text("a"), marked("b")]))],
    "text-parts": [(user([text("a")]), user("a")), (user([text("a"), text(""), text("b")]), user("a\nb"))],
    "trailing-blanks": [
        (assistant("done.  \n"), assistant("done.")),
        (assistant([text("a ")]), assistant([text("a")])),
    ],
    "dropped-reasoning": [(assistant("a", reasoning_content="r"), assistant("a"))],
    "text-beside-calls": [(calling(call(), content="I will call."), calling(call()))],
    "told-calls": [
        (calling(call()), assistant(TOLD)),
        (calling(call(), content=" I look. "), assistant([text(f"I look.\n{TOLD}")])),
        (assistant("Thought.\n"), assistant([text("Thought.")])),
        (assistant("x = 1"), assistant(f"x = 1\n{RUN}")),
    ],
    "null-call-fields": [
        (calling(call(extra=None)), calling(call())),
        (calling({"function": {"name": "f", "parsed": None}}), calling({"function": {"name": "f"}})),
    ],
    "call-ids": [(calling(call(id="toolu_1")), calling(call(id="call_1", type="x", index=1)))],
    "read-arguments": [
        (calling(call('{"a":12345678901234567890}')), calling(call('{"a": 1.2345678901234567e+19}'))),
        (calling(call('{"a":12345678901234567890.5}')), calling(call('{"a": 1.2345678901234567e+19}'))),
        (calling(call('{"a":0.12345678901234567890}')), calling(call('{"a": 0.12345678901234568}'))),
        (calling(call('{"a":[1,{"b":1,"b":2}],"a":3}')), calling(call('{"a": 3}'))),
    ],
    "respelled-arguments": [
        (
            calling(call('{"days": 1.0,   "city":"Z\\u00fcrich"}')),
            calling(call('{"city":"Z\u00fcrich","days":1}')),
        ),
        (calling(call('{"a":1}')), calling(call({"a": 1}))),
        (calling(call("")), calling(call("{}"))),
    ],
}
REFUSED = {
    "billing-header": [
        (system(billing("a", "b", "\n")), system(billing("a", "b", "\n").replace("coder", "poet"))),
        (user(HEADER.format("a", "b")), user(HEADER.format("a", "c"))),
        (system("my x-anthropic-billing-header: a=1;"), system("my x-anthropic-billing-header: a=2;")),
    ],
    "system-reminders": [
        (user(f"do it {REMINDER.format(1)}"), user("do that")),
        (assistant(REMINDER.format(1)), assistant(REMINDER.format(2))),
        (user("<system-reminder>open a"), user("<system-reminder>open b")),
        (user("<system-reminder>open "), user("<system-reminder>open")),
    ],
    "cache-control": [(user([marked("a")]), user([marked("b")]))],
    "text-parts": [
        (user([text("a"), {"type": "image"}]), user("a")),
        (user("ab"), user([text("a"), text("b")])),
    ],
    "trailing-blanks": [(assistant(" a"), assistant("a")), (user("a "), user("a"))],
    "dropped-reasoning": [(assistant("a", reasoning_content="r"), assistant("b"))],
    "text-beside-calls": [(assistant("a"), assistant("b"))],
    "told-calls": [
        (calling(call('{"a": 1}')), assistant(TOLD)),
        (calling(call(), content="I look."), assistant(TOLD)),
        (assistant("x = 2"), assistant(f"x = 1\n{RUN}")),
        (calling(call()), assistant("Calling tools:\n[open('x')]")),
        (calling(call('{"a": 1}'), content=TOLD), calling(call('{"a": 2}'), content=TOLD)),
        (user("a "), user("a")),
    ],
    "null-call-fields": [(calling(call(extra=0)), calling(call()))],
    "call-ids": [(calling(call()), calling({**call(), "function": {"name": "g", "arguments": "{}"}}))],
    "read-arguments": [
        (calling(call('{"a":9007199254740991}')), calling(call('{"a":9007199254740992}'))),
        (calling(call('{"a":1,"a":2}')), calling(call('{"a":1}'))),
        (calling(call('{"a":1e999}')), calling(call('{"a":null}'))),
        (calling(call('{"a":NaN}')), calling(call('{"a":null}'))),
        (calling(call('[1,{"a":1,"a":2}]')), calling(call('[1,{"a":2}]'))),
        (calling(call('{"a": 1}')), calling(call('{"a":1}'))),
    ],
    "respelled-arguments": [
        (calling(call('{"a":1}')), calling(call('{"a":true}'))),
        (calling(call('{"a":9007199254740993}')), calling(call('{"a":9007199254740992}'))),
        (calling(call('{"a":')), calling(call('{"a": '))),
        (calling(call("{}")), calling({"id": "c1", "type": "function", "function": {"name": "f"}})),
    ],
}


def rows(table):
    return [
        pytest.param(TOLERANCES[name], pair, id=f"{name}-{at}")
        for name in table
        for at, pair in enumerate(table[name])
    ]


def matcher_with(tolerance):
    return HarnessMatcher(Exact(), HarnessProfile("test", (tolerance,)))


def test_every_tolerance_is_tried():
    assert TOLERATED.keys() == REFUSED.keys() == TOLERANCES.keys()


@pytest.mark.parametrize(("tolerance", "pair"), rows(TOLERATED))
def test_tolerated(tolerance, pair):
    matcher = matcher_with(tolerance)
    assert not Exact().matches(*pair)
    assert matcher.matches(*pair)
    assert matcher.key(pair[0]) == matcher.key(pair[1]) is not None


@pytest.mark.parametrize(("tolerance", "pair"), rows(REFUSED))
def test_refused(tolerance, pair):
    matcher = matcher_with(tolerance)
    assert not matcher.matches(*pair)
    assert matcher.key(pair[0]) != matcher.key(pair[1])


@settings(max_examples=300, deadline=None)
@given(message=messages)
def test_a_tolerance_applied_twice_is_applied_once_and_changes_nothing_in_place(message):
    before = repr(message)
    for tolerance in TOLERANCES.values():
        form = tolerance.form(message)
        assert repr(tolerance.form(form)) == repr(form)
    assert repr(message) == before


@pytest.mark.parametrize("tolerance", TOLERANCES.values(), ids=TOLERANCES)
def test_a_plain_message_is_left_alone(tolerance):
    for message in (user("hello "), system("You help."), {"role": "tool", "content": "42"}):
        assert tolerance.form(message) is message


def test_a_pattern_is_cut_in_the_named_roles_only():
    tolerance = cut_pattern("clock", r"It is \d\d:\d\d\.", ["system"])
    matcher = matcher_with(tolerance)
    assert matcher.matches(system("Help. It is 10:00."), system("Help. It is 10:01."))
    assert not matcher.matches(user("It is 10:00."), user("It is 10:01."))
    assert tolerance.declares == r"text that matches It is \d\d:\d\d\. in messages of system"


def test_what_a_client_may_send_is_read_in_one_pass():
    opened, blanks = "<system-reminder>" * 200_000, " " * 2_000_000
    assert without_reminders(opened) == opened
    assert without_reminders(f"{blanks}<system-reminder>x</system-reminder>{blanks}a") == "a"
    endless = f"Calling tools:\n[{'1,' * 5_000_000}]"
    message = assistant(endless)
    assert TOLERANCES["told-calls"].form(message) is message
