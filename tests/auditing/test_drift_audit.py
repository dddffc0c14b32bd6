"""The drift audit: every leaf once, classed, with the first id that differs and the node it is of."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from sessions_app.api.metrics import MetricsView
from sessions_app.api.wiring import configured, renderer_of
from sessions_app.auditing.appearing import appears_at
from sessions_app.auditing.drift import Audit, Scope, audit
from sessions_app.insight.drift_findings import load_counts, load_groups
from sessions_app.models import DriftFinding, ModelProfile, Node, Session
from sessions_app.rendering.chat_template import ChatTemplate
from sessions_app.rendering.parsers.registry import reply_parser
from sessions_app.rendering.protocol import Renderer
from sessions_app.rendering.template_renderer import TemplateRenderer
from sessions_app.tasks import drift_audit
from tests.client import Client, reply_of, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.test_cases import says
from tests.rendering.support import byte_tokenizer
from tests.toy import TEMPLATES

Toy = tuple[Client, FakeEngine]
OBSERVED = 12


def of_profile(profile: ModelProfile) -> Renderer:
    return renderer_of(configured(settings.TITO, profile))


def with_template(source: str) -> Any:
    """The same tokenizer under another template."""

    def load(profile: ModelProfile) -> Renderer:
        served = of_profile(profile)
        assert isinstance(served, TemplateRenderer)
        return TemplateRenderer(served.tokenizer, ChatTemplate(source), served.parser, {})

    return load


def with_bytes(profile: ModelProfile) -> Renderer:
    parser = reply_parser("none", "none", byte_tokenizer())
    return TemplateRenderer(byte_tokenizer(), ChatTemplate("{{ messages }}"), parser, {})


def audited(session: str, load: Any = of_profile, **scope: Any) -> Audit:
    return audit(load, Scope(session=UUID(hex=session), **scope))


def finding(session: str, seq: int) -> DriftFinding:
    return DriftFinding.objects.get(session=UUID(hex=session), node_seq=seq)


def turn(toy: Toy, session: str, messages: list[Any], ids: list[int], content: str = "ab") -> list[Any]:
    """A generated turn; the history it leaves."""
    client, engine = toy
    engine.script(Reply(ids, message=says(content)))
    return [*messages, reply_of(client.chat(session, messages))]


def one_turn(toy: Toy, ids: list[int], content: str = "ab") -> str:
    session = toy[0].create()
    turn(toy, session, [user("hello")], ids, content)
    return session


@pytest.mark.parametrize("ids", [[100, 2], [100], [100, 2, 3]])
def test_the_ids_of_a_fresh_render_are_the_same_whatever_was_served_of_the_close(toy: Toy, ids: Any) -> None:
    session = one_turn(toy, ids)
    assert audited(session).outcomes == {"same": 1}
    found = finding(session, 0)
    assert (found.first_token, found.first_node_seq, found.details) == (None, None, "[]")
    assert found.renderer == "template"
    assert found.template_fingerprint == of_profile(found.session.profile).template_fingerprint


def test_another_split_is_expected_and_has_its_place(toy: Toy) -> None:
    client, _ = toy
    session = client.create()
    history = turn(toy, session, [user("hello")], [100, 2])
    turn(toy, session, [*history, user("ok")], [1097, 1098, 2])
    assert audited(session).outcomes == {"expected": 1}
    found = finding(session, 1)
    node = Node.objects.get(session=UUID(hex=session), seq=1)
    assert (found.retoken_mismatch, found.template_mismatch, found.others_mismatch) == (True, False, False)
    assert (found.first_token, found.first_node_seq) == (node.prompt_tokens, 1)
    assert found.served_tokens == node.total_tokens


def test_drift_appears_with_the_turn_that_makes_an_earlier_one_print_otherwise(toy: Toy) -> None:
    """A template that drops reasoning when a user speaks again: the first turn is printed as it was served
    until the second."""
    client, engine = toy
    session = client.create()
    engine.script(Reply([8, 102, 9, 100, 2], message=says("ab", reasoning_content="ok")))
    history: list[Any] = [user("hello"), reply_of(client.chat(session, [user("hello")]))]
    for text in ("ok", "ab", "more"):
        history = turn(toy, session, [*history, user(text)], [100, 2])
    served = of_profile(Session.objects.get(pk=UUID(hex=session)).profile)

    def stripping(profile: ModelProfile) -> Renderer:
        renderer = with_template(TEMPLATES["toy-chatml-strip-think"])(profile)
        renderer.template_fingerprint = served.template_fingerprint
        return renderer

    assert audited(session, stripping).outcomes == {"expected": 1}
    found = finding(session, 3)
    assert (found.first_node_seq, found.appears_node_seq) == (0, 1)
    assert audited(session).outcomes == {"same": 1}
    assert finding(session, 3).appears_node_seq is None


@pytest.mark.parametrize("first", range(7))
def test_where_drift_appears_is_found_in_a_few_looks(first: int) -> None:
    looks: list[int] = []

    def drifts(turn: int) -> bool:
        looks.append(turn)
        return turn >= first

    assert appears_at(7, drifts) == first
    assert len(looks) <= 3


def test_another_text_of_the_assistants_is_expected(toy: Toy) -> None:
    session = one_turn(toy, [1097, 1120, 2])
    assert audited(session).outcomes == {"expected": 1}
    found = finding(session, 0)
    assert (found.assistant_text, found.others_mismatch) == (1, True)
    (shown,) = json.loads(found.details)
    assert (shown["type"], shown["actual_text"].endswith("ax")) == ("assistant_text", True)


def test_a_lost_or_added_special_token_is_a_defect(toy: Toy) -> None:
    session = one_turn(toy, [100, OBSERVED, 1097, 2], "aba")
    assert audited(session).outcomes == {"defect": 1}
    found = finding(session, 0)
    assert (found.special_token_count, found.template_mismatch) == (1, True)


def test_reasoning_that_was_served_and_is_not_printed_is_the_assistants(toy: Toy) -> None:
    session = one_turn(toy, [8, 102, 9, 100, 2])
    audited(session)
    assert finding(session, 0).outcome == "expected"


def test_long_differences_are_cut_around_their_first_character(toy: Toy) -> None:
    session = one_turn(toy, [1098] * 3000 + [1097] * 600 + [2], "b" * 3000 + "c" * 600)
    audited(session)
    (shown,) = json.loads(finding(session, 0).details)
    assert shown["expected_text"].startswith("…bbb")
    assert "bc" in shown["expected_text"]
    assert "ba" in shown["actual_text"]
    assert len(shown["actual_text"]) < 600


def test_every_leaf_is_audited_once(toy: Toy) -> None:
    client, _ = toy
    session = client.create()
    history = turn(toy, session, [user("hello")], [100, 2])
    turn(toy, session, [*history, user("ok")], [100, 2])
    turn(toy, session, [*history, user("ab")], [100, 2])
    turn(toy, session, [user("other")], [100, 2])
    assert audited(session).audited == 3
    rows = DriftFinding.objects.filter(session=UUID(hex=session))
    assert list(rows.values_list("node_seq", flat=True)) == [1, 2, 3]
    assert audited(session).audited == 0
    turn(toy, session, [*history, user("more")], [100, 2])
    assert audited(session).audited == 1


def test_an_audit_goes_on_where_the_limit_stopped_it(toy: Toy) -> None:
    session = toy[0].create()
    for text in ("hello", "ok", "ab"):
        turn(toy, session, [user(text)], [100, 2])
    first = audited(session, limit=2)
    assert (first.audited, first.complete) == (2, False)
    rest = audited(session, limit=2)
    assert (rest.audited, rest.complete) == (1, True)


def test_no_node_is_begun_when_the_time_is_over(toy: Toy) -> None:
    session = one_turn(toy, [100, 2])
    done = audited(session, seconds=-1.0)
    assert (done.audited, done.complete) == (0, False)


def test_active_sessions_are_left_for_later(toy: Toy) -> None:
    session = one_turn(toy, [100, 2])
    assert audited(session, quiet_s=60.0).audited == 0
    Session.objects.filter(pk=UUID(hex=session)).update(
        last_activity_at=timezone.now() - timedelta(minutes=2)
    )
    assert audited(session, quiet_s=60.0).audited == 1


def test_again_replaces_what_was_found(toy: Toy) -> None:
    session = one_turn(toy, [100, 2])
    audited(session)
    DriftFinding.objects.filter(session=UUID(hex=session)).update(fresh_tokens=-1)
    assert audited(session, again=True).audited == 1
    assert finding(session, 0).fresh_tokens > 0
    assert DriftFinding.objects.filter(session=UUID(hex=session)).count() == 1


def test_another_renderer_audits_again_and_what_cannot_be_compared_is_unknown(toy: Toy) -> None:
    session = one_turn(toy, [100, 2])
    audited(session)
    assert audited(session, with_template("{{ messages }}")).outcomes == {"unknown": 1}
    assert finding(session, 0).reason == "template_changed"
    assert audited(session, with_bytes).outcomes == {"unknown": 1}
    assert finding(session, 0).reason == "tokenizer_changed"
    assert audited(session, with_bytes).audited == 0


def test_what_the_template_refuses_is_unknown_with_its_words(toy: Toy, monkeypatch: Any) -> None:
    session = one_turn(toy, [100, 2])

    def refuse(*args: Any, **kwargs: Any) -> Any:
        from sessions_app.errors import TemplateError

        raise TemplateError("no such role")

    monkeypatch.setattr(TemplateRenderer, "render", refuse)
    assert audited(session).outcomes == {"unknown": 1}
    found = finding(session, 0)
    assert (found.reason, json.loads(found.details)[0]["detail"]) == ("render_failed", "no such role")


def test_a_profile_that_cannot_be_loaded_is_left_out_and_named(toy: Toy) -> None:
    def broken(profile: ModelProfile) -> Renderer:
        raise ValueError("no such folder")

    session = one_turn(toy, [100, 2])
    done = audited(session, broken)
    assert (done.audited, done.unavailable) == (0, {"default": "no such folder"})


def test_kwargs_of_the_request_are_those_of_the_render(toy: Toy) -> None:
    client, engine = toy
    session = client.create()
    engine.script(Reply([100, 2], message=says("ab")))
    reply_of(client.chat(session, [user("hello")], chat_template_kwargs={"named": "x"}))
    assert audited(session).outcomes == {"same": 1}


def test_findings_leave_with_their_session(toy: Toy) -> None:
    session = one_turn(toy, [100, 2])
    audited(session)
    Session.objects.filter(pk=UUID(hex=session)).delete()
    assert not DriftFinding.objects.filter(session=UUID(hex=session)).exists()


def test_counts_add_up_and_lead_to_their_rows(toy: Toy) -> None:
    session = toy[0].create(harness="counted")
    for ids in ([100, 2], [1097, 1098, 2], [1097, 1120, 2], [100, OBSERVED, 1097, 2]):
        turn(toy, session, [user("hello")], ids, "aba" if OBSERVED in ids else "ab")
    audited(session)
    counts = load_counts(UUID(hex=session))
    assert counts.outcomes == {"same": 1, "expected": 2, "defect": 1, "unknown": 0}
    assert counts.audited == 4
    assert (counts.types["assistant_text"], counts.types["special_token_count"]) == (1, 1)
    assert counts.breaks == {"template_mismatch": 1, "retoken_mismatch": 1, "others_mismatch": 1}
    (group,) = [(group, of) for group, of in load_groups() if group.harness == "counted"]
    assert (group[0].profile, group[0].renderer, group[1]) == ("default", "template", counts)


def command(*arguments: str) -> str:
    out = StringIO()
    call_command("drift_audit", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_audits_and_tells(toy: Toy) -> None:
    session = one_turn(toy, [1097, 1098, 2])
    text = command("--session", session)
    assert "audited now: 1 expected" in text
    assert "1 retoken_mismatch" in text
    told = json.loads(command("--session", session, "--json"))
    assert (told["audited"], told["all"]["outcomes"]["expected"]) == ({}, 1)


def test_the_command_says_what_is_no_session() -> None:
    with pytest.raises(CommandError, match="no session id"):
        command("--session", "nonsense")
    with pytest.raises(CommandError, match="session not found"):
        command("--session", "0" * 32)


def test_the_periodic_task_takes_sessions_at_rest(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    session = one_turn(toy, [100, 2])
    at_rest = timezone.now() + timedelta(days=1)
    Session.objects.filter(pk=UUID(hex=session)).update(created_at=at_rest)
    assert drift_audit() is not None
    assert not DriftFinding.objects.filter(session=UUID(hex=session)).exists()
    Session.objects.filter(pk=UUID(hex=session)).update(last_activity_at=timezone.now() - timedelta(hours=1))
    monkeypatch.setattr(settings, "TITO", replace(settings.TITO, drift_audit_nodes=0))
    assert drift_audit() == {}
    monkeypatch.setattr(settings, "TITO", replace(settings.TITO, drift_audit_nodes=1))
    assert drift_audit() == {"same": 1}
    assert finding(session, 0).outcome == "same"


def test_the_task_is_sent_periodically() -> None:
    (entry,) = [one for one in settings.CELERY_BEAT_SCHEDULE.values() if one["task"] == drift_audit.name]
    assert 0 < entry["schedule"] <= 600


def test_metrics_count_paths_by_outcome_and_class(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MetricsView, "_cached", None)
    before = exposed(toy)
    committed(one_turn(toy, [1097, 1098, 2]))
    committed(one_turn(toy, [100, OBSERVED, 1097, 2], "aba"))
    monkeypatch.setattr(MetricsView, "_cached", None)
    after = exposed(toy)
    grown = {name: value - before.get(name, 0) for name, value in after.items() if value != before.get(name)}
    assert grown == {
        'tito_drift_paths{outcome="expected"}': 1,
        'tito_drift_paths{outcome="defect"}': 1,
        'tito_drift_paths_by_class{class="retoken_mismatch"}': 1,
        'tito_drift_paths_by_class{class="special_token_count"}': 1,
        'tito_drift_paths_by_class{class="template_mismatch"}': 1,
    }


def exposed(toy: Toy) -> dict[str, float]:
    """The metrics of drift."""
    lines = toy[0].call("GET", "/metrics").body.decode().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if line.startswith("tito_drift"))
    return {name: float(value) for name, value in pairs}


def committed(session: str) -> None:
    """Audits on a connection of its own: the server does not see the test's transaction."""

    def work() -> None:
        audited(session)
        connection.close()

    with ThreadPoolExecutor(1) as thread:
        thread.submit(work).result()
