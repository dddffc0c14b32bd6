"""Several sessions at once, chosen in the list: asked first, logged for each, refused to viewers."""

import uuid

import pytest
from django.test import Client

from sessions_app.admin.pages import many_page
from sessions_app.admin.roles import OPERATOR, VIEWER
from sessions_app.models import Session
from tests.admin.seeding import Login, Seeds, Server
from tests.admin.test_pages import page, session_url, twin

LIST = "/admin/sessions_app/session/"


def chosen(browser: Client, action: str, *sessions: str) -> str:
    """Where the question stands that choosing sessions in the list leads to."""
    ids = [str(uuid.UUID(session)) for session in sessions]
    reply = browser.post(LIST, {"action": f"{action}_chosen", "_selected_action": ids})
    assert reply.status_code == 302
    return reply["Location"]


def test_chosen_sessions_are_closed_after_a_question(login: Login, seeded: tuple[Server, Seeds]) -> None:
    operator = login(OPERATOR)
    talks = [seeded[0].session().id for _ in range(2)]
    url = chosen(operator, "close", *talks)
    text = page(operator, url)
    assert "Close: 2 sessions" in text
    assert all(talk in text for talk in talks)
    assert Session.objects.filter(pk__in=talks, status="open").count() == 2
    assert operator.post(url).status_code == 302
    assert Session.objects.filter(pk__in=talks, status="closed").count() == 2
    for talk in talks:
        assert [one["text"] for one in twin(operator, session_url(talk))["actions"]] == ["closed the session"]


def test_viewers_choose_nothing(login: Login, seeds: Seeds) -> None:
    viewer = login(VIEWER)
    assert "close_chosen" not in page(viewer, LIST)
    for action in many_page.ACTIONS:
        url = f"{LIST}do/{action}/?ids={seeds.plain}"
        assert viewer.get(url).status_code == 403
        assert viewer.post(url).status_code == 403
    assert Session.objects.get(pk=seeds.plain).status == "open"


@pytest.mark.parametrize(
    ("action", "ids"), [("explode", "{plain}"), ("close", ""), ("close", "x,y"), ("close", "0" * 32)]
)
def test_what_cannot_be_done_is_told(login: Login, seeds: Seeds, action: str, ids: str) -> None:
    operator = login(OPERATOR)
    url = f"{LIST}do/{action}/?ids={ids.format(plain=seeds.plain)}"
    assert operator.post(url).status_code == 404


def test_too_many_are_refused_at_once(login: Login, seeds: Seeds, monkeypatch) -> None:
    monkeypatch.setattr(many_page, "MOST", 1)
    ids = [str(uuid.UUID(session)) for session in (seeds.plain, seeds.busy)]
    reply = login(OPERATOR).post(LIST, {"action": "close_chosen", "_selected_action": ids}, follow=True)
    assert "At most 1 sessions at once." in reply.content.decode()
