"""What verify_renderer finds stands with the profile, warns at start, and stops a hopeless one."""

import json
import logging
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from sessions_app.api import wiring
from sessions_app.api.wiring import build_profile, configured
from sessions_app.auditing import verification
from sessions_app.auditing.verification import Verification, stored, verified
from sessions_app.backends.factory import create_backend
from sessions_app.models import ModelProfile
from sessions_app.rendering.verification import Check
from tests.rendering.support import HISTORY, family, healing_renderer
from tests.toy import write_model
from tito_project.configuration import BACKENDS, read
from tito_project.env import Environment

CHATML = HISTORY / "config/chatml.jinja"
REFUSING = "{{ raise_exception('never') }}"


@pytest.fixture
def profile() -> ModelProfile:
    return ModelProfile.objects.create(name="verified", backend="sglang-generate")


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every verification that is made."""
    made: list[Any] = []
    verify = verification.verify

    def counting(renderer: Any) -> Any:
        made.append(renderer)
        return verify(renderer)

    monkeypatch.setattr(verification, "verify", counting)
    return made


def test_a_result_is_made_once_and_stored(profile: ModelProfile, counted: list[Any]) -> None:
    assert stored(profile) is None
    first = verified(profile, healing_renderer("plain"))
    again = verified(ModelProfile.objects.get(name="verified"), healing_renderer("plain"))
    assert len(counted) == 1
    assert again == first
    assert stored(ModelProfile.objects.get(name="verified")) == first
    row = ModelProfile.objects.get(name="verified")
    assert json.loads(row.verification)[0]["verdict"] == "ok"
    assert row.verified_at is not None


def test_another_renderer_or_parser_is_verified_anew(profile: ModelProfile, counted: list[Any]) -> None:
    verified(profile, healing_renderer("plain"))
    verified(profile, healing_renderer("nl_glue"))
    profile.tool_parser = "none"
    verified(profile, healing_renderer("nl_glue"))
    verified(profile, healing_renderer("nl_glue").with_kwargs({"x": 1}))
    assert len(counted) == 4


def test_only_what_counts_for_the_backend_is_a_failure() -> None:
    checks = (Check("seam", "a", "fail"), Check("role", "user", "fail"), Check("parse", "b", "fail"))
    rows = (*checks, Check("seam", "c", "warn"), Check("seam", "d", "ok"))
    areas = {
        backend: [check.area for check in Verification(rows, backend).failures]
        for backend in ("sglang", "sglang-generate", "vllm-chat")
    }
    assert areas == {
        "sglang": ["seam", "role"],
        "sglang-generate": ["seam", "role", "parse"],
        "vllm-chat": [],
    }


@pytest.mark.parametrize("name", BACKENDS)
def test_parsers_count_where_the_engine_does_not_parse(name: str, profile: ModelProfile) -> None:
    if name == "local":
        pytest.importorskip("torch")
    configuration = replace(
        configured(settings.TITO, profile), backend=name, backend_url=("http://127.0.0.1:1",), model="x"
    )
    backend = create_backend(configuration, healing_renderer("plain"))
    counts = bool(Verification((Check("parse", "a", "fail"),), name).failures)
    assert counts is not backend.speaks_chat


def started(monkeypatch: pytest.MonkeyPatch, folder: Path, template: str, renderer: str, **more: str) -> Any:
    """The default profile, built under an environment."""
    file = folder / "template.jinja"
    file.write_text(template)
    environment = {
        "TITO_HOME": str(settings.TITO.home),
        "TITO_MODEL": str(write_model(folder / "model")),
        "TITO_CHAT_TEMPLATE": str(file),
        "TITO_RENDERER": renderer,
        "TITO_BACKEND": "sglang",
        "TITO_BACKEND_URL": "http://127.0.0.1:1",
        **more,
    }
    monkeypatch.setattr(settings, "TITO", read(Environment(environment)))
    monkeypatch.setattr(wiring, "connection", SimpleNamespace(close=lambda: None))  # the test's own
    return build_profile("default")


def test_a_failure_is_one_line_of_the_log_at_every_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "sessions_app.api.wiring"):
            built = started(monkeypatch, tmp_path, CHATML.read_text(), "template:default")
        lines = [record.getMessage() for record in caplog.records]
        assert lines
        assert len(lines) == len(built.warnings)
        assert any("seam: text, then user: at token" in line for line in lines)
        assert not any("parse:" in line for line in lines)


def test_a_parser_that_disagrees_with_the_family_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"TITO_TOOL_PARSER='glm' .* is read by 'qwen3'"):
        started(monkeypatch, tmp_path, CHATML.read_text(), "template:qwen3", TITO_TOOL_PARSER="glm")


def test_a_good_template_is_silent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "sessions_app.api.wiring"):
        assert started(monkeypatch, tmp_path, CHATML.read_text(), "template").warnings == ()
    assert caplog.records == []


def test_a_template_that_renders_nothing_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"profile 'default': .* renders no conversation: never"):
        started(monkeypatch, tmp_path, REFUSING, "template")


def test_a_template_that_needs_tools_or_a_system_message_starts(profile: ModelProfile) -> None:
    assert verified(profile, family("qwen3")).checks
