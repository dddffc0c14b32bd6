"""The backend that a configuration names."""

from dataclasses import dataclass
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from sessions_app.backends.factory import create_backend, engine_urls
from tests.backends.test_tokenizer_check import demo_renderer
from tito_project.configuration import BACKENDS, Configuration, read
from tito_project.env import Environment


@dataclass(frozen=True)
class Case:
    """A backend name and whether the engine parses messages."""

    name: str
    speaks_chat: bool


CASES = [
    Case("sglang", True),
    Case("demo", True),
    Case("vllm-chat", True),
    Case("sglang-generate", False),
    Case("vllm", False),
    Case("vllm-completions", False),
    Case("local", False),
]


def configuration(**variables: str) -> Configuration:
    return read(Environment(variables))


def test_the_cases_are_all_backends():
    assert {case.name for case in CASES} == set(BACKENDS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_name_builds_its_backend(case):
    chosen = configuration(TITO_BACKEND=case.name, TITO_BACKEND_URL="http://127.0.0.1:1, http://127.0.0.1:2")
    backend: Any = create_backend(chosen, demo_renderer())
    assert (backend.name, backend.speaks_chat) == (case.name, case.speaks_chat)


@pytest.mark.parametrize("name", ["sglang", "sglang-generate", "vllm", "vllm-completions", "vllm-chat"])
def test_a_real_engine_needs_an_address(name):
    with pytest.raises(ImproperlyConfigured, match="TITO_BACKEND_URL"):
        create_backend(configuration(TITO_BACKEND=name), demo_renderer())


@pytest.mark.parametrize(
    "url", ["engine:30000", "http://", "ftp://a/b", "http://a:99999", "http://[::1", "http://a..b"]
)
def test_an_address_that_is_none_is_refused_at_once(url):
    with pytest.raises(ImproperlyConfigured, match="TITO_BACKEND_URL="):
        create_backend(configuration(TITO_BACKEND="vllm", TITO_BACKEND_URL=url), demo_renderer())


def test_the_demo_engine_has_a_default_address():
    assert engine_urls(configuration()) == ("http://127.0.0.1:8900",)


def test_local_without_a_model_or_without_torch_names_the_remedy(monkeypatch):
    monkeypatch.setattr("sessions_app.backends.local.backend.find_spec", lambda name: None)
    with pytest.raises(ImproperlyConfigured, match=r"requirements-local\.txt"):
        create_backend(configuration(TITO_BACKEND="local"), demo_renderer())
    monkeypatch.setattr("sessions_app.backends.local.backend.find_spec", lambda name: object())
    with pytest.raises(ImproperlyConfigured, match="TITO_MODEL"):
        create_backend(configuration(TITO_BACKEND="local"), demo_renderer())
