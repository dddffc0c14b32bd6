"""Long lists are paged by place: nothing is skipped or shown twice, and what takes too long is given up."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.test import Client

from sessions_app.admin import bounded, counting
from sessions_app.admin.bounded import TooLong, time_bound
from sessions_app.admin.paging import Place, asked_place, keys_of, read_page
from sessions_app.admin.session import SessionAdmin
from sessions_app.models import Session
from tests.admin.seeding import Seeds
from tests.admin.test_pages import page, twin

LIST = "/admin/sessions_app/session/"
HARNESS = "paged"
SIZE = 7


@pytest.fixture
def sessions(seeds: Seeds) -> list[str]:
    """Ids in the order of the list; every three were created at the same time."""
    model = Session.objects.get(pk=seeds.plain)
    rows = [copied(model, at // 3) for at in range(SIZE)]
    Session.objects.bulk_create(rows)
    rows.sort(key=lambda row: (row.created_at, row.id), reverse=True)
    return [row.id.hex for row in rows]


def copied(model: Session, minute: int) -> Session:
    values = {field.attname: getattr(model, field.attname) for field in Session._meta.concrete_fields}
    own = {"id": uuid.uuid4(), "harness": HARNESS, "rollout_id": None, "attempt_id": None}
    at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minute)
    return Session(**(values | own | {"created_at": at, "forks": minute % 2}))


@pytest.fixture
def two_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists so short are long."""
    monkeypatch.setattr(counting, "EXACT_UP_TO", 3)
    monkeypatch.setattr(SessionAdmin, "list_per_page", 2)


def walk(staff: Client, value: dict[str, Any], name: str) -> list[list[str]]:
    pages = [[row["id"] for row in value["rows"]]]
    while (url := value["pages"].get(name)) is not None and len(pages) <= SIZE:
        value = twin(staff, LIST + url.removesuffix("&format=json"))
        pages.append([row["id"] for row in value["rows"]])
    return pages


def test_next_shows_every_row_once_in_order(staff: Client, sessions: list[str], two_a_page: None) -> None:
    pages = walk(staff, twin(staff, f"{LIST}?harness={HARNESS}"), "next")
    assert [one for rows in pages for one in rows] == sessions
    assert [len(rows) for rows in pages] == [2, 2, 2, 1]


def test_previous_leads_back_from_the_last(staff: Client, sessions: list[str], two_a_page: None) -> None:
    last = twin(staff, f"{LIST}?harness={HARNESS}&before=")
    assert set(last["pages"]) == {"first", "previous"}
    pages = walk(staff, last, "previous")
    assert [one for rows in reversed(pages) for one in rows] == sessions


def test_another_order_is_paged_too(staff: Client, sessions: list[str], two_a_page: None) -> None:
    column = SessionAdmin.list_display.index("forks_shown") + 1
    pages = walk(staff, twin(staff, f"{LIST}?harness={HARNESS}&o={column}"), "next")
    forks = dict(Session.objects.filter(pk__in=sessions).values_list("id", "forks"))
    shown = [one for rows in pages for one in rows]
    assert sorted(shown) == sorted(sessions)
    assert [forks[uuid.UUID(one)] for one in shown] == sorted(forks.values())


@pytest.mark.parametrize("query", ["after=x", "after=2026-01-01~zz", "before=~", "p=3", "after=%00"])
def test_an_address_without_a_place_shows_the_first_page_and_says_so(
    staff: Client, sessions: list[str], two_a_page: None, query: str
) -> None:
    url = f"{LIST}?harness={HARNESS}&{query}"
    assert [row["id"] for row in twin(staff, url)["rows"]] == sessions[:2]
    assert "The address names no place in this list" in page(staff, url)


def test_long_lists_show_places_and_short_ones_numbers(
    staff: Client, sessions: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SessionAdmin, "list_per_page", 2)
    url = f"{LIST}?harness={HARNESS}"
    assert 'rel="next"' not in page(staff, url)
    assert 'href="?harness=paged&amp;p=2"' in page(staff, url)
    monkeypatch.setattr(counting, "EXACT_UP_TO", 3)
    assert 'rel="next"' in page(staff, url)
    assert "&amp;p=2" not in page(staff, url)


def test_a_page_skips_no_rows_to_get_there(sessions: list[str]) -> None:
    rows = Session.objects.filter(harness=HARNESS).order_by("-created_at", "-pk")
    keys = keys_of(Session, rows.query.order_by)
    assert keys is not None
    first = read_page(rows, keys, None, 2)
    place = asked_place({"after": first.after or ""}, keys)
    sql = str(place.narrowed(rows, keys).query) if place else ""
    assert "OFFSET" not in sql
    assert '"created_at" <=' in sql  # what bounds the index scan


@pytest.mark.parametrize("ordering", [["?"], ["profile__name"], ["-finished_at"], ["created_at"], [None]])
def test_orders_without_places_are_known(ordering: list[Any]) -> None:
    assert keys_of(Session, ordering) is None


def test_what_has_gone_is_still_a_place(staff: Client, sessions: list[str]) -> None:
    rows: QuerySet = Session.objects.filter(harness=HARNESS).order_by("-created_at", "-pk")
    keys = keys_of(Session, rows.query.order_by) or []
    after = read_page(rows, keys, None, 2).after
    Session.objects.filter(pk=sessions[1]).delete()
    rest = read_page(rows, keys, asked_place({"after": after or ""}, keys), SIZE)
    assert [row.id.hex for row in rest.rows] == sessions[2:]
    assert read_page(rows, keys, Place(None, True), 1).rows[0].id.hex == sessions[-1]


def test_a_list_that_takes_too_long_is_given_up_and_says_how_to_narrow_it(
    staff: Client, seeds: Seeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SessionAdmin, "get_queryset", slow)
    monkeypatch.setattr(bounded, "LONGEST_S", 0.05)
    text = page(staff, LIST)
    assert "Not read" in text
    assert "Add a time or a search" in text
    value = twin(staff, LIST)
    assert (value["gave_up"], value["rows"]) == (True, [])


def slow(self: SessionAdmin, request: Any) -> QuerySet:
    """Sessions that take a second."""
    return Session.objects.extra(where=["pg_sleep(1)::text IS NOT NULL"])


def test_the_bound_ends_with_its_block() -> None:
    with time_bound(0.05):
        assert shown_timeout() == "50ms"
    assert shown_timeout() == "0"
    with pytest.raises(TooLong), time_bound(0.05), connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(5)")
    assert shown_timeout() == "0"


def shown_timeout() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        return str(cursor.fetchone()[0])


def test_deleted_sessions_are_left_out_until_asked_for(staff: Client, sessions: list[str]) -> None:
    gone = sessions[0]
    Session.objects.filter(pk=gone).update(deleted_at=datetime(2026, 1, 2, tzinfo=UTC))

    def ids(query: str) -> set[str]:
        return {row["id"] for row in twin(staff, f"{LIST}?{query}")["rows"]}

    assert ids(f"harness={HARNESS}") == set(sessions) - {gone}
    assert ids(f"harness={HARNESS}&deleted=too") == set(sessions)
    assert ids(f"harness={HARNESS}&deleted=only") == {gone}
    assert ids(f"q={gone}") == {gone}
