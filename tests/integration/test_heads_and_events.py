"""What the engine would see at the head is part of a checkpoint's identity; odd turns tell their reason."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sessions_app.models import HistoryEvent
from tests.client import Client, reply_of, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.families import family_server
from tests.integration.test_cases import says
from tests.integration.test_rollback import Talk, attach
from tests.integration.test_tree import TOOL

TEMPLATE = """
{%- if date is defined -%}{{ '<|im_start|>system\nToday ' ~ date ~ '<|im_end|>\n' }}{%- endif -%}
{%- for m in messages -%}
{{- '<|im_start|>' ~ m.role ~ '\n' ~ (m.content | upper if m.role == 'system' and shout else m.content) -}}
{{- '<|im_end|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|>assistant\n' ~ ('<think></think>' if think is defined and not think else '') -}}
{%- endif -%}
"""
Pair = tuple[Client, FakeEngine]


@pytest.fixture(scope="module")
def pair(tmp_path_factory, django_db_setup, django_db_blocker) -> Iterator[Pair]:
    path: Path = tmp_path_factory.mktemp("template") / "kwargs.jinja"
    path.write_text(TEMPLATE, encoding="utf-8")
    settings = {"TITO_CHAT_TEMPLATE": str(path)}
    with django_db_blocker.unblock(), family_server("qwen3", **settings) as served:
        yield served


@pytest.mark.parametrize("policy", ["tree", "linear", "rollback"])
@pytest.mark.parametrize(
    ("kwargs", "at_head"),
    [
        ({"date": "Monday"}, True),
        ({"shout": True}, True),
        ({"think": False}, False),
        ({"unheard_of": 1}, False),
    ],
)
def test_kwargs_that_change_the_head_are_another_head(
    pair: Pair, policy: str, kwargs: dict[str, Any], at_head: bool
) -> None:
    talk = Talk(pair, history_policy=policy)
    talk.history = [{"role": "system", "content": "abc"}]
    talk.turn("one")
    kind = {"tree": "fork", "linear": "reset"}.get(policy) if at_head else None
    answer = talk.send([*talk.history, user("two")], chat_template_kwargs=kwargs)
    event = HistoryEvent.objects.get(session_id=talk.session)
    assert event.cause == "template_kwargs_changed"
    if kind is None:
        assert attach(answer) == ("append", "0", None)
        assert event.kind == "notice"
    else:
        assert attach(answer) == (kind, None, "template_kwargs_changed")
        assert event.kind == kind
    if policy == "tree":
        assert attach(talk.turn("three"))[1] == "0"


CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":1,"b":2}'}}


def test_an_event_names_the_first_difference_and_the_matcher_that_would_have_matched(pair: Pair) -> None:
    talk = Talk(pair)
    talk.engine.script(Reply([30, 31], message=says("", tool_calls=[CALL])))
    talk.client.chat(talk.session, [user("one")])
    respelled = {**CALL, "function": {"name": "f", "arguments": '{"b": 2, "a": 1}'}}
    talk.send([user("one"), says("", tool_calls=[respelled]), user("two")])
    event = HistoryEvent.objects.get(session_id=talk.session)
    assert (event.kind, event.cause) == ("fork", "tool_arguments_spelling")
    assert (event.compared_seq, event.node_seq, event.message_index) == (0, 1, 1)
    assert (event.matcher, event.looser_matcher) == ("strict", "loose_tool_call")
    assert "arguments" in event.field
    assert '"a":1' in event.stored_value.replace("\\", "")
    assert '"b": 2' in event.replayed_value.replace("\\", "")
    served = talk.client.get(talk.session, "?leaf=0")["metadata"]["accumulated_token_ids"]
    assert served[: event.token_index] == talk.fed[: event.token_index]
    assert served[event.token_index] != talk.fed[event.token_index]


def test_of_two_replies_to_one_request_the_event_compares_with_the_one_that_was_replayed(pair: Pair) -> None:
    talk = Talk(pair)
    again = {**CALL, "id": "d"}
    for call in (CALL, again):
        talk.engine.script(Reply([30, 31], message=says("", tool_calls=[call])))
        talk.client.chat(talk.session, [user("one")])
    respelled = {**CALL, "function": {"name": "f", "arguments": '{"b": 2, "a": 1}'}}
    talk.send([user("one"), says("", tool_calls=[respelled]), user("two")])
    event = HistoryEvent.objects.get(session_id=talk.session, node_seq=2)
    assert (event.compared_seq, event.cause) == (0, "tool_arguments_spelling")
    assert (event.message_index, event.looser_matcher) == (1, "loose_tool_call")


@pytest.mark.parametrize("policy", ["tree", "rollback", "linear"])
def test_of_a_retry_the_missing_reply_is_the_difference(pair: Pair, policy: str) -> None:
    talk = Talk(pair, history_policy=policy)
    talk.turn("one")
    talk.send([user("one")])
    event = HistoryEvent.objects.get(session_id=talk.session)
    assert (event.cause, event.compared_seq, event.message_index) == ("retry", 0, 1)
    assert (event.field, event.replayed_value) == ("messages", None)
    assert json.loads(event.stored_value) == {"role": "assistant", "content": "re one"}


def test_every_event_names_the_matcher_in_force(pair: Pair) -> None:
    talk = Talk(pair)
    talk.turn("one")
    talk.send([user("one")], "re one", model="other")
    talk.send([user("other")])
    talk.send([user("one")], tools=[TOOL])
    talk.engine.script(Reply([30], message=says("cut"), finish="length"))
    cut = talk.client.chat(talk.session, [user("cut")])
    talk.send([user("cut"), reply_of(cut), user("on")])
    events = HistoryEvent.objects.filter(session_id=talk.session)
    assert {"retry", "twin", "tools_changed", "truncated_parent"} <= set(
        events.values_list("cause", flat=True)
    )
    assert set(events.values_list("matcher", flat=True)) == {"strict"}


def test_values_of_an_event_are_cut(pair: Pair) -> None:
    talk = Talk(pair)
    talk.turn("x" * 10_000)
    talk.send([user("x" * 9_000 + "y" * 1_000)])
    event = HistoryEvent.objects.get(session_id=talk.session)
    assert event.char_offset == 9_000
    assert max(len(event.stored_value.encode()), len(event.replayed_value.encode())) <= 2_048


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"tools": [TOOL]}, "tools_changed"),
        ({"chat_template_kwargs": {"date": "Monday"}}, "template_kwargs_changed"),
    ],
)
def test_a_refused_head_is_named(pair: Pair, fields: dict[str, Any], cause: str) -> None:
    talk = Talk(pair, history_policy="linear", on_nonlinear="error")
    talk.turn("one")
    assert talk.send([*talk.history, user("two")], **fields).code == "nonlinear_history"
    event = HistoryEvent.objects.get(session_id=talk.session)
    assert (event.kind, event.cause) == ("refused", cause)


COUNTING = "{{ messages | length }}" + TEMPLATE
"""A template that prints earlier turns anew."""


@pytest.mark.parametrize("renderer", ["template", "template:qwen3"])
def test_a_template_that_is_not_append_only_is_named(tmp_path, renderer: str) -> None:
    path = tmp_path / "counting.jinja"
    path.write_text(COUNTING, encoding="utf-8")
    settings = {"TITO_CHAT_TEMPLATE": str(path), "TITO_RENDERER": renderer}
    with family_server("qwen3", **settings) as pair:
        for policy, option, kind in (
            ("tree", "reset", "fork"),
            ("linear", "reset", "reset"),
            ("linear", "passthrough", "passthrough"),
            ("linear", "error", "refused"),
            ("rollback", "reset", "refused"),
        ):
            talk = Talk(pair, history_policy=policy, on_nonlinear=option)
            talk.turn("one")
            before = talk.snapshot()
            answer = talk.send([*talk.history, user("two")])
            event = HistoryEvent.objects.get(session_id=talk.session)
            assert event.cause == "template_not_append_only"
            if renderer != "template":
                assert (answer.code, event.kind) == ("template_error", "refused")
            else:
                assert event.kind == kind
            assert (answer.status == 200) == (event.kind != "refused")
            assert answer.status == 200 or talk.snapshot() == before
