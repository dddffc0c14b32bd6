"""`manage.py serve` and what a server before it left unanswered."""

import socket
from dataclasses import replace

import pytest
from django.conf import settings

from sessions_app.errors import NotReady
from sessions_app.management.commands import serve


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Ages that intents had to have; nothing is served."""
    ages: list[float] = []
    monkeypatch.setattr(serve, "settle_dangling", lambda _conninfo, older: ages.append(older))
    monkeypatch.setattr(serve, "_serve", lambda _configuration, _listener: True)
    monkeypatch.setattr(settings, "TITO", replace(settings.TITO, port=0))
    return ages


def handed_down() -> int:
    """A listening socket as `up` hands it down."""
    return socket.create_server(("127.0.0.1", 0)).detach()


def test_under_up_what_the_server_before_left_is_lost_at_once(settled, monkeypatch) -> None:
    monkeypatch.setattr(settings, "EMBEDDED_POSTGRES", True)
    serve.Command().handle(workers=1, fd=handed_down())
    assert settled == [0]


def test_servers_that_others_may_stand_beside_settle_nothing_young(settled, monkeypatch) -> None:
    monkeypatch.setattr(settings, "EMBEDDED_POSTGRES", True)
    serve.Command().handle(workers=1, fd=None)
    monkeypatch.setattr(settings, "EMBEDDED_POSTGRES", False)
    serve.Command().handle(workers=1, fd=handed_down())
    assert settled == []


def test_a_database_that_is_away_does_not_keep_the_server_down(settled, monkeypatch) -> None:
    def away(_conninfo: str, _older: float) -> int:
        raise NotReady("the database does not answer")

    monkeypatch.setattr(settings, "EMBEDDED_POSTGRES", True)
    monkeypatch.setattr(serve, "settle_dangling", away)
    serve.Command().handle(workers=1, fd=handed_down())
