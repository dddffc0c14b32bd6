"""Reads of conversations in the screens stay on record: who, whose, what, when."""

from datetime import timedelta

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone

from sessions_app.admin.roles import ADMIN, OPERATOR, complete_roles
from sessions_app.auditing import reads
from sessions_app.insight.what_if.jobs import ask
from sessions_app.insight.what_if.wanted import wanted_of
from sessions_app.models import DataRead, Message, Record, Session
from sessions_app.tasks import what_if
from tests.admin.seeding import Seeds
from tests.admin.test_pages import node_url, page, session_url, twin

READS = "/admin/sessions_app/dataread/"


def noted(session: str) -> dict[str, int]:
    """What was read of a session by the test's administrator, and how often."""
    rows = DataRead.objects.filter(session_id=session, username="root")
    return dict(rows.values_list("what", "reads"))


PAGES = [
    ("change/", "session"),
    ("node/0/", "node"),
    ("node/0/tokens/", "token view"),
    ("node/0/diff/", "lanes"),
    ("node/0/case/", "case"),
    ("samples/", "samples"),
    ("rewards/", "rewards"),
    ("dump/", "dump"),
]
QUESTIONS = ("do/<str:action>/", "node/0/class/")
"""Pages that ask before something is done; they show no text."""


def test_no_page_of_a_session_is_left_out() -> None:
    below = "<str:session_id>/"
    routes = [str(url.pattern) for url in admin.site._registry[Session].get_urls()]
    own = {route.removeprefix(below).replace("<int:seq>", "0") for route in routes if route.startswith(below)}
    assert own - set(QUESTIONS) == {path for path, _ in PAGES} - {"change/"}


@pytest.mark.parametrize(("path", "what"), PAGES)
def test_every_page_of_a_session_is_a_read(staff: Client, seeds: Seeds, path: str, what: str) -> None:
    for suffix in ("", "?format=json"):
        assert staff.get(f"/admin/sessions_app/session/{seeds.plain}/{path}{suffix}").status_code == 200
    assert noted(seeds.plain) == {what: 2}


def test_comparing_reads_both_sides(staff: Client, seeds: Seeds) -> None:
    page(staff, f"/admin/sessions_app/session/compare/?a={seeds.plain}:0&b={seeds.busy}:0")
    assert noted(seeds.plain) == noted(seeds.busy) == {"comparison": 1}


@pytest.mark.parametrize(("model", "rows"), [(Message, "message"), (Record, "record")])
def test_rows_and_lists_of_rows_are_reads(staff: Client, seeds: Seeds, model, rows: str) -> None:
    row = model.objects.filter(session_id=seeds.plain).first()
    url = f"/admin/sessions_app/{rows}/"
    page(staff, f"{url}{row.pk}/change/")
    twin(staff, f"{url}{row.pk}/change/")
    page(staff, f"{url}?session={seeds.plain}")
    twin(staff, f"{url}?session={seeds.plain}")
    assert noted(seeds.plain) == {rows: 2, f"list of {rows}s": 2}
    assert set(DataRead.objects.filter(username="root").values_list("session_id", flat=True)) == {
        row.session_id
    }


def test_a_replay_is_a_read_of_the_sessions_it_compares(staff: Client, seeds: Seeds) -> None:
    wanted = wanted_of({"sessions": [seeds.busy], "matcher": "loose_tool_call"})
    job = ask(wanted, "root")
    assert what_if(job.pk.hex) == "done"
    twin(staff, f"/admin/sessions_app/session/what-if/{job.pk.hex}/")
    twin(staff, f"/admin/sessions_app/whatifjob/{job.pk}/change/")
    assert noted(seeds.busy) == {"replay": 2}


def test_what_shows_no_text_is_no_read(staff: Client, seeds: Seeds) -> None:
    page(staff, "/admin/sessions_app/session/")
    page(staff, f"/admin/sessions_app/session/{seeds.plain}/do/close/")
    assert staff.get(session_url("0" * 32)).status_code == 404
    Client().get(session_url(seeds.plain))
    assert not DataRead.objects.filter(username__in=("root", "")).exists()


def test_the_list_is_for_admins_and_finds_readers_and_sessions(staff: Client, seeds: Seeds) -> None:
    page(staff, node_url(seeds.plain, 0))
    (row,) = twin(staff, f"{READS}?q=root")["rows"]
    assert (row["username"], row["what"], row["session_id"]) == ("root", "node", seeds.plain)
    found = twin(staff, f"{READS}?q={seeds.plain}")["rows"]
    assert row in found
    assert {one["session_id"] for one in found} == {seeds.plain}
    assert twin(staff, f"{READS}?q=somebody")["rows"] == []
    assert "root" in page(staff, READS)


@pytest.mark.parametrize(("role", "status"), [(OPERATOR, 403), (ADMIN, 200)])
def test_operators_do_not_see_who_reads(client: Client, role: str, status: int) -> None:
    complete_roles()
    user = User.objects.create(username=role, is_staff=True)
    user.groups.add(Group.objects.get(name=role))
    client.force_login(user)
    assert client.get(READS).status_code == status


def test_a_read_outlives_the_session_and_goes_by_age(staff: Client, seeds: Seeds) -> None:
    session = Session.objects.get(pk=seeds.plain)
    reads.note("gone", "node", [session.id])
    reads.note("young", "node", [session.id])
    DataRead.objects.filter(username="gone").update(last_at=timezone.now() - timedelta(days=91))
    assert reads.forget(90) == 1
    assert not DataRead.objects.filter(username="gone").exists()
    assert DataRead.objects.filter(username="young").exists()
    assert DataRead._meta.get_field("session_id").related_model is None
