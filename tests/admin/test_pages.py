"""Every list and every page of the operator screens answers, says what it should, and hides nothing."""

import json
from typing import Any

import pytest
from django.contrib import admin
from django.test import Client

from sessions_app.models import HistoryEvent, Node, Record, Session
from tests.admin.seeding import Seeds, Server

LISTS = sorted(
    f"{model._meta.app_label}/{model._meta.model_name}"
    for model in admin.site._registry
    if model._meta.app_label in ("sessions_app", "trainer_export")
)
"""Applications and models as they stand in addresses."""

RAW = ("<script>document", "<b>bold", "<img src=x", "<script>alert", "<i>odd", "\u202e", "\u200b", "\x07")
"""What a page must not hold as it is."""


def page(staff: Client, url: str) -> str:
    reply = staff.get(url)
    assert reply.status_code == 200, (reply.status_code, url)
    return reply.content.decode()


def twin(staff: Client, url: str) -> Any:
    return json.loads(page(staff, url + ("&" if "?" in url else "?") + "format=json"))


def session_url(session: str) -> str:
    return f"/admin/sessions_app/session/{session}/change/"


def node_url(session: str, seq: int) -> str:
    return f"/admin/sessions_app/session/{session}/node/{seq}/"


@pytest.mark.parametrize("rows", LISTS)
def test_every_list_and_row_answers_as_page_and_as_json(staff: Client, seeds: Seeds, rows: str) -> None:
    url = f"/admin/{rows}/"
    page(staff, url)
    listed = twin(staff, url)
    assert listed["count"] == len(listed["rows"]) or listed["count"] > 50
    for row in listed["rows"][:3]:
        reply = staff.get(f"{url}{row['id']}/change/", follow=True)
        assert reply.status_code == 200
        assert json.loads(staff.get(f"{url}{row['id']}/change/?format=json").content)


@pytest.mark.parametrize("rows", [name for name in LISTS if not name.endswith("/modelprofile")])
def test_rows_of_the_forest_can_be_neither_made_nor_changed_nor_deleted(
    staff: Client, seeds: Seeds, rows: str
) -> None:
    url = f"/admin/{rows}/"
    assert staff.get(f"{url}add/").status_code == 403
    for row in twin(staff, url)["rows"][:1]:
        assert staff.post(f"{url}{row['id']}/delete/", {"post": "yes"}).status_code == 403
        assert staff.post(f"{url}{row['id']}/change/", {"seq": 7}, follow=True).status_code in (200, 403, 405)
    assert staff.post(url, {"action": "delete_selected", "_selected_action": "1"}).status_code in (
        200,
        302,
        403,
    )


@pytest.mark.parametrize("name", ["plain", "busy", "rolled", "reset", "odd", "failed", "empty"])
def test_every_seeded_session_and_node_has_its_page(staff: Client, seeds: Seeds, name: str) -> None:
    session = getattr(seeds, name)
    text = page(staff, session_url(session))
    value = twin(staff, session_url(session))
    assert value["session"]["id"] == session
    assert session in text
    for line in value["turns"]["lines"]:
        assert f"node {line['seq']}" in text
        assert "Ids of the path" in page(staff, node_url(session, line["seq"]))
        assert twin(staff, node_url(session, line["seq"]))["node"]["seq"] == line["seq"]


def test_counts_of_the_fact_strip_are_those_of_the_rows(staff: Client, seeds: Seeds) -> None:
    value = twin(staff, session_url(seeds.busy))
    nodes = Node.objects.filter(session_id=seeds.busy)
    inner = set(nodes.values_list("parent_seq", flat=True))
    assert value["facts"]["turns"] == nodes.count()
    assert value["facts"]["leaves"] == sum(seq not in inner for seq in nodes.values_list("seq", flat=True))
    assert value["facts"]["states"] == {
        state: Record.objects.filter(session_id=seeds.busy, state=state).count()
        for state in value["facts"]["states"]
    }
    assert (
        sum(value["facts"]["causes"].values()) == HistoryEvent.objects.filter(session_id=seeds.busy).count()
    )
    assert value["counters"]["forks"] == Session.objects.get(pk=seeds.busy).forks


def test_the_fork_card_names_the_matcher_that_would_have_matched(staff: Client, seeds: Seeds) -> None:
    event = HistoryEvent.objects.get(session_id=seeds.busy, cause="tool_arguments_spelling")
    text = page(staff, node_url(seeds.busy, event.node_seq or 0))
    assert "loose_tool_call" in text
    assert "tool_calls[0].function.arguments" in text
    assert "Tool arguments came back in another spelling" in text


def test_content_is_escaped_and_what_is_invisible_is_shown(staff: Client, seeds: Seeds) -> None:
    for url in (
        session_url(seeds.odd),
        node_url(seeds.odd, 0),
        node_url(seeds.odd, 2),
        "/admin/sessions_app/session/",
        "/admin/sessions_app/message/",
        "/admin/sessions_app/historyevent/",
    ):
        text = page(staff, url)
        for raw in RAW:
            assert raw not in text, (url, raw)
    text = page(staff, node_url(seeds.odd, 0))
    assert "&lt;script&gt;document" in text
    assert "U+202E" in text
    assert "RIGHT-TO-LEFT OVERRIDE" in text
    assert "U+0007" in text


def test_unknown_ids_are_told_and_not_an_error(staff: Client, seeds: Seeds) -> None:
    for url in (
        session_url("0" * 32),
        session_url("nonsense"),
        node_url(seeds.plain, 99),
        node_url(seeds.plain, 10**18),
        node_url("0" * 32, 0),
        node_url(seeds.plain, 99) + "tokens/",
    ):
        assert staff.get(url).status_code == 404, url
        reply = staff.get(url + "?format=json")
        assert reply.status_code == 404
        assert json.loads(reply.content)["error"]


def test_pages_are_for_staff_who_may_look(client: Client, seeds: Seeds, django_user_model) -> None:
    assert client.get(session_url(seeds.plain)).status_code == 302
    client.force_login(django_user_model.objects.create(username="blind", is_staff=True))
    for url in (
        session_url(seeds.plain),
        node_url(seeds.plain, 0),
        "/admin/sessions_app/session/?format=json",
    ):
        assert client.get(url).status_code == 403


@pytest.mark.parametrize("term", ["{id}", "{prefix}", "rollout-1", "group-1", "task=sums", "{response}"])
def test_a_session_is_found_by_what_an_operator_has_in_hand(staff: Client, seeds: Seeds, term: str) -> None:
    response = Node.objects.filter(session_id=seeds.plain).values_list("response_id", flat=True)[0]
    wanted = term.format(id=seeds.plain, prefix=seeds.plain[:10], response=response)
    rows = twin(staff, f"/admin/sessions_app/session/?q={wanted}")["rows"]
    assert seeds.plain in {row["id"] for row in rows}
    assert len(rows) < Session.objects.count()


def test_a_search_for_nothing_known_finds_nothing(staff: Client, seeds: Seeds) -> None:
    for term in ("no such thing", "'; drop table", "a=b", "=", "zzz"):
        assert twin(staff, f"/admin/sessions_app/session/?q={term}")["rows"] == []


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("cause=tool_arguments_spelling", "busy"),
        ("happened=rollbacks", "rolled"),
        ("happened=resets", "reset"),
        ("harness=unlucky", "failed"),
        ("history_policy__exact=rollback", "rolled"),
        ("matcher=strict", "plain"),
    ],
)
def test_filters_keep_the_sessions_that_have_it(staff: Client, seeds: Seeds, query: str, name: str) -> None:
    among = "" if name == "failed" else f"&q={getattr(seeds, name)}"  # a list shows its newest page only
    rows = twin(staff, f"/admin/sessions_app/session/?{query}{among}")["rows"]
    assert getattr(seeds, name) in {row["id"] for row in rows}
    assert seeds.empty not in {row["id"] for row in rows} or query.startswith("matcher")


def test_the_list_of_sessions_shows_all_counters_and_the_causes_of_forks(staff: Client, seeds: Seeds) -> None:
    (row,) = twin(staff, f"/admin/sessions_app/session/?q={seeds.busy}")["rows"]
    value = twin(staff, session_url(seeds.busy))
    for name in ("healed_turns", "healed_prefix_tokens", "nonlinear", "close_unresolved", "rollbacks"):
        assert row[name] == value["counters"][name]
    assert (row["leaves"], row["roots"]) == (value["facts"]["leaves"], value["facts"]["roots"])
    assert sum(row["fork_causes"].values()) == value["counters"]["forks"]
    text = page(staff, f"/admin/sessions_app/session/?q={seeds.busy}")
    assert f"{value['facts']['leaves']} leaves" in text
    assert f"{row['healed_prefix_tokens']:,} ids" in text
    assert next(iter(row["fork_causes"])) in text


def test_a_very_long_text_is_cut_and_leads_to_all_of_it(staff: Client, seeded: tuple[Server, Seeds]) -> None:
    talk = seeded[0].session()
    talk.turn([{"role": "user", "content": "word " * 12_000}])
    text = page(staff, node_url(talk.id, 0))
    assert text.count("word word") < 11_000
    assert "The beginning of 60,000 characters" in text
    (row,) = twin(staff, f"/admin/sessions_app/message/?session={talk.id}&node_seq=0&position=0")["rows"]
    assert row["body"].count("word") == 12_000


def test_an_address_without_a_page_is_a_page_for_staff_and_the_references_words_for_others(
    staff: Client,
) -> None:
    stranger = Client()
    missing = staff.get("/admin/sessions_app/nothing/")
    assert missing.status_code == 404
    assert "No page has this address." in missing.content.decode()
    assert "Sessions" in missing.content.decode()
    assert stranger.get("/admin/sessions_app/nothing/").status_code == 302, "asked to sign in"
    for other in (staff, stranger):
        elsewhere = other.get("/nothing")
        assert (elsewhere.status_code, elsewhere.json()) == (404, {"detail": "Not Found"})
        assert elsewhere.headers["X-Tito-Error-Code"] == "not_found"


def test_what_is_a_line_has_a_line_in_the_form_of_a_profile(staff: Client) -> None:
    form = page(staff, "/admin/sessions_app/modelprofile/add/")
    assert form.count('rows="1"') == 4
