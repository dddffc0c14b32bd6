"""The row `default` between starts: what the environment sets, lets go of, and leaves to the admin."""

import pytest
from django.conf import settings

from sessions_app.api.wiring import mirrored_default
from sessions_app.models import ModelProfile
from tito_project.configuration import read
from tito_project.env import Environment
from trainer_export.renderers import profile_renderer

pytestmark = pytest.mark.django_db


def test_a_setting_that_failed_a_start_is_gone_with_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = started(monkeypatch, TITO_MODEL="/no/such/model", TITO_RENDERER="nonsense")
    assert (failed.model, failed.renderer) == ("/no/such/model", "nonsense")
    plain = started(monkeypatch)
    assert (plain.model, plain.renderer, plain.pinned) == ("", "auto", "")


def test_what_the_environment_never_set_is_the_admins(monkeypatch: pytest.MonkeyPatch) -> None:
    started(monkeypatch, TITO_MODEL="/a/model")
    ModelProfile.objects.filter(name="default").update(reasoning_parser="none")
    assert started(monkeypatch).reasoning_parser == "none"


def test_a_command_with_less_in_its_environment_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = started(monkeypatch, TITO_TOOL_PARSER="none")
    started_with(monkeypatch)
    profile_renderer.cache_clear()
    monkeypatch.setattr("trainer_export.renderers.connection.close", lambda: None)  # the test's own
    profile_renderer("default")
    after = ModelProfile.objects.get(name="default")
    assert (after.tool_parser, after.pinned) == (before.tool_parser, "tool_parser")
    profile_renderer.cache_clear()


def started(monkeypatch: pytest.MonkeyPatch, **environment: str) -> ModelProfile:
    """The row after a start under an environment."""
    started_with(monkeypatch, **environment)
    return mirrored_default()


def started_with(monkeypatch: pytest.MonkeyPatch, **environment: str) -> None:
    """The settings of an environment, in force."""
    home = {"TITO_HOME": str(settings.TITO.home)}
    monkeypatch.setattr(settings, "TITO", read(Environment({**home, **environment})))
