"""Django's settings, read from environments of our choice."""

import os
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

import tito_project.settings
from tito_project.secret_files import stored_secret

Read = Callable[..., dict[str, Any]]


@pytest.fixture
def settings_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Read]:
    """Reads the settings file afresh, with nothing set but what is given."""
    stored_secret.cache_clear()

    def read(**variables: str) -> dict[str, Any]:
        monkeypatch.setattr(os, "environ", {"TITO_HOME": str(tmp_path / "home"), **variables})
        return runpy.run_path(str(tito_project.settings.__file__))

    yield read
    stored_secret.cache_clear()


def test_the_secret_key_is_made_on_first_use(settings_of: Read, tmp_path: Path) -> None:
    settings = settings_of()
    assert not (tmp_path / "home").exists()
    assert str(settings["SECRET_KEY"]) == (tmp_path / "home" / "secret-key").read_text().strip()


def test_a_given_secret_key_is_used_and_nothing_is_written(settings_of: Read, tmp_path: Path) -> None:
    assert settings_of(SECRET_KEY="given")["SECRET_KEY"] == "given"
    assert not (tmp_path / "home").exists()


def test_the_admin_token_is_made_only_when_needed(settings_of: Read, tmp_path: Path) -> None:
    assert settings_of()["TITO"].admin_token is None
    token = settings_of(TITO_AUTH="token")["TITO"].admin_token
    kept = tmp_path / "home" / "admin-token"
    assert token == kept.read_text().strip()
    assert kept.stat().st_mode & 0o777 == 0o600
    assert settings_of(TITO_AUTH="token", TITO_ADMIN_TOKEN="mine")["TITO"].admin_token == "mine"


def test_debug_is_off_and_hosts_are_loopback_unless_set(settings_of: Read) -> None:
    settings = settings_of()
    assert settings["DEBUG"] is False
    assert settings["ALLOWED_HOSTS"] == ["localhost", "[::1]", "127.0.0.1"]
    assert settings_of(DEBUG="1", ALLOWED_HOSTS="a.example,b.example")["ALLOWED_HOSTS"] == [
        "a.example",
        "b.example",
    ]


def test_services_are_embedded_unless_given(settings_of: Read) -> None:
    embedded = settings_of()
    assert embedded["EMBEDDED_POSTGRES"]
    assert embedded["EMBEDDED_VALKEY"]
    assert embedded["DATABASES"]["default"]["HOST"].startswith("/")
    assert embedded["CELERY_BROKER_URL"].startswith("redis+socket:///")
    given = settings_of(
        DATABASE_URL="postgres://u:p@db.example:5433/name", REDIS_URL="redis://cache.example/1"
    )
    assert not given["EMBEDDED_POSTGRES"]
    assert not given["EMBEDDED_VALKEY"]
    assert given["DATABASES"]["default"]["HOST"] == "db.example"
    assert given["DATABASES"]["default"]["PORT"] == 5433
    assert given["CELERY_BROKER_URL"] == "redis://cache.example/1"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "mysql://u:secret@h/n"),
        ("DATABASE_URL", "sqlite:///file"),
        ("DATABASE_URL", "postgres://u:secret@h:port/n"),
        ("REDIS_URL", "amqp://u:secret@h"),
        ("DEBUG", "sometimes"),
    ],
)
def test_nonsense_names_the_variable_and_shows_no_password(settings_of: Read, name: str, value: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=name) as caught:
        settings_of(**{name: value})
    assert "secret" not in str(caught.value)


def test_a_delivered_task_is_acknowledged_after_its_end(settings_of: Read) -> None:
    settings = settings_of()
    assert settings["CELERY_TASK_ACKS_LATE"] is True
    assert settings["CELERY_WORKER_PREFETCH_MULTIPLIER"] == 1
    assert settings["CELERY_BROKER_TRANSPORT_OPTIONS"]["unacked_restore_throttle"] == 1
