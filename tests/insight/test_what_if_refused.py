"""Requests that a policy refused are replayed too: refused again in the same world, served in some others."""

import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings

from sessions_app.history.harness.profiles import BUILT_IN_PROFILES
from sessions_app.insight.what_if.asked import load_requests
from sessions_app.insight.what_if.report import Report
from sessions_app.insight.what_if.running import World, own_settings, run
from sessions_app.insight.what_if.setup import Changes, setup_of
from sessions_app.insight.what_if.simulate import replay
from sessions_app.models import Node, Record, Session
from tests.admin.seeding import SYSTEM, TOOLS, Conversation, Seeds, Server, call, user

WORLD = World(BUILT_IN_PROFILES, max_rollback=1)


def replayed(talk: Conversation, **changes: Any) -> Report:
    return run([UUID(talk.id)], Changes(**changes), WORLD, lambda _: None, lambda *_: None)


@pytest.fixture
def refused(seeded: tuple[Server, Seeds]) -> Conversation:
    """Policy rollback: the fourth request respells the call of the first reply, too deep to go back to."""
    talk = seeded[0].session(history_policy="rollback")
    first = [SYSTEM, user("Add 2 and 3.")]
    reply = talk.turn(first, "Adding.", calls=[call('{"a": 2, "b": 3}')], tools=TOOLS)
    history = [*first, reply, {"role": "tool", "tool_call_id": "call-1", "content": "5"}]
    history.append(talk.turn(history, "Five.", tools=TOOLS))
    history.append(user("Again"))
    history.append(talk.turn(history, "Five, again.", tools=TOOLS))
    respelled = [*first, {**reply, "tool_calls": [call('{"b":3,"a":2}')]}, *history[3:], user("Thanks")]
    assert talk.send(respelled, tools=TOOLS)[0] == 400
    return talk


def test_what_was_refused_is_kept_as_it_was_spelled(refused: Conversation) -> None:
    (request,) = load_requests(UUID(refused.id)).refused
    arguments = request.messages[2]["tool_calls"][0]["function"]["arguments"]
    assert (arguments, request.messages[-1], len(request.messages)) == ('{"b":3,"a":2}', user("Thanks"), 8)
    assert (request.code, request.after) == ("rollback_too_deep", 3)
    record = Record.objects.get(session_id=refused.id, state="refused")
    assert record.raw_tail == '[{"role": "user", "content": "Thanks"}]'
    assert record.raw_leading is not None
    assert list(json.loads(record.raw_leading)) == ["2"]


def test_in_its_own_world_it_is_refused_again(refused: Conversation) -> None:
    session = Session.objects.get(pk=refused.id)
    found = load_requests(session.id)
    setup = setup_of(own_settings(session, settings.TITO.max_rollback), Changes(), BUILT_IN_PROFILES)
    (turned,) = replay(found.asked, setup, found.refused).turned
    assert (turned.kind, turned.refused) == (None, "rollback_too_deep")
    report = replayed(refused, matcher="strict")
    assert (report.before.refused, report.after.refused, report.served) == (1, 1, 0)


def test_a_looser_matcher_would_have_served_it_and_the_pair_is_named(refused: Conversation) -> None:
    report = replayed(refused, matcher="loose_tool_call")
    assert (report.before.refused, report.after.refused, report.served) == (1, 0, 1)
    (result,) = report.results
    record = Record.objects.get(session_id=refused.id, state="refused")
    (served,) = result.served
    assert (served.record, served.code, served.kind, served.parent) == (
        record.pk,
        "rollback_too_deep",
        "append",
        2,
    )
    (pair,) = result.pairs
    assert (pair.seq, pair.record, pair.index) == (None, record.pk, 2)
    assert pair.field == "tool_calls[0].function.arguments"


def test_another_policy_would_have_forked(refused: Conversation) -> None:
    report = replayed(refused, policy="tree")
    (result,) = report.results
    (served,) = result.served
    assert (served.kind, served.parent, served.cause) == ("fork", None, "tool_arguments_spelling")
    assert report.after.turns == report.before.turns == 3, "a refused request grows nothing"


def test_a_linear_error_is_replayed(seeded: tuple[Server, Seeds]) -> None:
    talk = seeded[0].session(history_policy="linear", on_nonlinear="error")
    talk.turn([SYSTEM, user("One")], "First.")
    assert talk.send([SYSTEM, user("Something else")])[0] == 409
    assert replayed(talk, on_nonlinear="error").served == 0
    (result,) = replayed(talk, on_nonlinear="reset").results
    assert [(one.kind, one.parent) for one in result.served] == [("reset", None)]


def test_other_refusals_keep_no_messages(seeded: tuple[Server, Seeds]) -> None:
    talk = seeded[0].session(history_policy="rollback")
    talk.turn([SYSTEM, user("One")], "First.")
    assert talk.send([])[0] == 400
    record = Record.objects.get(session_id=talk.id, state="refused")
    assert (record.raw_path, record.raw_tail, record.head_digest) == (None, None, None)
    assert load_requests(UUID(talk.id)).refused == []


def test_replaying_changes_nothing(refused: Conversation) -> None:
    before = list(Record.objects.filter(session_id=refused.id).values()), Node.objects.count()
    replayed(refused, policy="tree")
    assert (list(Record.objects.filter(session_id=refused.id).values()), Node.objects.count()) == before


def test_a_role_that_is_no_text_is_refused_where_its_message_would_be_appended(
    seeded: tuple[Server, Seeds],
) -> None:
    talk = seeded[0].session(history_policy="tree")
    reply = talk.turn([user("Add 2 and 3.")], "", calls=[call('{"a": 2, "b": 3}')])
    respelled = {**reply, "tool_calls": [call('{"b":3,"a":2}')]}
    talk.turn([user("Add 2 and 3."), respelled, {"role": ["tool"], "content": "5"}], "Five.")
    own = own_settings(Session.objects.get(pk=talk.id), settings.TITO.max_rollback)
    setup = setup_of(own, Changes(matcher="loose_tool_call"), BUILT_IN_PROFILES)
    found = replay(load_requests(UUID(talk.id)).asked, replace(setup, append_roles=frozenset({"tool"})))
    assert [placed.refused for placed in found.placed] == [None, "role_not_appendable"]
