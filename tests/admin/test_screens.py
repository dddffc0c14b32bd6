"""Compare, health, test cases: what they say agrees with the rows."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.db import connection
from django.test import Client

from sessions_app.admin.pages import health_page
from sessions_app.admin.pages.health_page import RANGES, window_of
from sessions_app.analytics.rates import METRICS
from sessions_app.models import Node, Record, Session
from tests.admin.seeding import Seeds
from tests.admin.test_pages import RAW, node_url, page, twin
from tests.pasted_case import NotHere, check_case

HEALTH = "/admin/sessions_app/session/health/"


def compare_url(one: str, other: str) -> str:
    return f"/admin/sessions_app/session/compare/?a={one}&b={other}"


def test_every_model_has_its_screen() -> None:
    ours = [
        *apps.get_app_config("sessions_app").get_models(),
        *apps.get_app_config("trainer_export").get_models(),
    ]
    assert [model for model in ours if model not in admin.site._registry] == []


def test_a_range_that_takes_too_long_is_said_to(staff: Client, seeds: Seeds, monkeypatch) -> None:
    monkeypatch.setattr(health_page, "LONGEST_S", 0.05)
    monkeypatch.setattr(
        health_page, "load_rates", lambda *_: connection.cursor().execute("SELECT pg_sleep(5)")
    )
    reply = staff.get(HEALTH)
    assert reply.status_code == 503
    assert "Take a shorter range of time." in reply.content.decode()
    assert "shorter range" in json.loads(staff.get(HEALTH + "?format=json").content)["error"]


def test_siblings_share_what_their_parents_share(staff: Client, seeds: Seeds) -> None:
    value = twin(staff, compare_url(f"{seeds.busy}:1", f"{seeds.busy}:2"))
    assert value["shared_node"] == 0
    assert value["shared_messages"] == 4
    assert value["total"] > 0
    assert [side["messages"][0]["position"] for side in value["sides"]] == [4, 4]
    text = page(staff, compare_url(f"{seeds.busy}:1", f"{seeds.busy}:2"))
    assert "The sum is five." in text


def test_sessions_can_be_compared_too(staff: Client, seeds: Seeds) -> None:
    value = twin(staff, compare_url(f"{seeds.busy}:1", f"{seeds.odd}:0"))
    assert value["shared_node"] is None
    assert all(raw not in page(staff, compare_url(f"{seeds.busy}:1", f"{seeds.odd}:0")) for raw in RAW)


@pytest.mark.parametrize(
    "query", ["", "?a=x&b=y", "?a={busy}:99&b={busy}:1", f"?a={'0' * 32}:1&b={'0' * 32}:1"]
)
def test_what_cannot_be_compared_is_told(staff: Client, seeds: Seeds, query: str) -> None:
    reply = staff.get("/admin/sessions_app/session/compare/" + query.format(busy=seeds.busy))
    assert reply.status_code == 404


def test_a_test_case_holds_what_reproduces_the_turn(staff: Client, seeds: Seeds) -> None:
    value = twin(staff, node_url(seeds.plain, 1) + "case/")
    session = Session.objects.select_related("profile").get(pk=seeds.plain)
    node = Node.objects.get(session_id=seeds.plain, seq=1)
    assert len(value["expectation"]["fed_ids"]) == node.prompt_tokens
    assert len(value["expectation"]["sampled_ids"]) == node.total_tokens - node.prompt_tokens
    assert len(value["messages"]) == node.message_count - 1
    assert value["reply"]["role"] == "assistant"
    assert session.profile.renderer == value["profile"]["renderer"]


def test_every_turn_that_is_copied_runs_as_a_test(staff: Client, seeds: Seeds) -> None:
    told = set()
    for name in ("plain", "busy", "rolled", "odd"):
        session = getattr(seeds, name)
        for seq in Node.objects.filter(session_id=session).values_list("seq", flat=True):
            text = page(staff, node_url(session, seq) + "case/")
            check_case(text)
            told.add(json.loads(text)["expectation"]["fresh_render"])
    assert told == {"equal", "differs"}


def test_a_copied_turn_that_no_longer_holds_fails(staff: Client, seeds: Seeds) -> None:
    case = twin(staff, node_url(seeds.plain, 1) + "case/")
    case["messages"][0]["content"] += " And be brief."
    with pytest.raises(AssertionError):
        check_case(json.dumps(case))
    with pytest.raises(NotHere):
        check_case(json.dumps(case | {"tokenizer_fingerprint": "0" * 64}))


def test_health_counts_what_the_records_say(staff: Client, seeds: Seeds) -> None:
    value = twin(staff, f"{HEALTH}?range=24h&split=harness")
    cards = {card["name"]: card for card in value["cards"]}
    assert list(cards) == list(METRICS)
    lost = {row["part"]: row for row in cards["upstream_error"]["rows"]}
    assert (
        lost["unlucky"]["hits"]
        == Record.objects.filter(session_id=seeds.failed, state="upstream_error").count()
    )
    assert sum(row["total"] for row in lost.values()) == cards["upstream_error"]["total"]
    whole = {card["name"]: card for card in twin(staff, f"{HEALTH}?range=24h")["cards"]}
    assert {name: card["hits"] for name, card in whole.items()} == {
        name: card["hits"] for name, card in cards.items()
    }
    page(staff, f"{HEALTH}?range=1h&split=template")


def test_each_number_of_health_leads_to_its_sessions(staff: Client, seeds: Seeds) -> None:
    cards = {card["name"]: card for card in twin(staff, f"{HEALTH}?range=24h&split=harness")["cards"]}
    for name, harness, session in (
        ("rollback", "linear-agent", seeds.rolled),
        ("reset", "linear-agent", seeds.reset),
        ("refused", "unlucky", seeds.failed),
    ):
        row = next(row for row in cards[name]["rows"] if row["part"] == harness)
        assert row["hits"]
        behind = twin(staff, row["href"])
        assert sum(one["hits"] for one in behind["sessions"]) == row["hits"]
        assert session in {one["session_id"] for one in behind["sessions"]}
        page(staff, row["href"])


def test_alarms_are_raised_above_their_thresholds_only(staff: Client, seeds: Seeds) -> None:
    assert not any(card["alarming"] for card in twin(staff, HEALTH)["cards"])
    settings.TITO.alerts["rollback"] = 0.0
    settings.TITO.alerts["fork"] = 1.0
    try:
        alarming = {card["name"] for card in twin(staff, HEALTH)["cards"] if card["alarming"]}
        assert alarming == {"rollback"}
        assert "above 0 %" in page(staff, HEALTH)
    finally:
        settings.TITO.alerts.clear()


@pytest.mark.parametrize(
    "query", ["", "?metric=fork&split=no", "?metric=fork&from=now", "?metric=x&split=nothing"]
)
def test_a_point_that_does_not_exist_is_told(staff: Client, seeds: Seeds, query: str) -> None:
    reply = staff.get(f"{HEALTH}sessions/{query}{'&' if query else '?'}format=json")
    assert reply.status_code == 404
    assert json.loads(reply.content)["error"]


@pytest.mark.parametrize("span", RANGES)
def test_windows_end_with_the_running_step(span: str) -> None:
    now = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
    window = window_of(span, now)
    assert window.stop - window.step <= now < window.stop
    assert (window.stop - window.start) / window.step == pytest.approx(RANGES[span][0] / RANGES[span][1])
    assert window_of(span, window.stop - timedelta(seconds=1)) == window
