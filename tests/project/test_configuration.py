"""The frozen configuration."""

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from tito_project.configuration import read
from tito_project.env import Environment


def test_an_empty_environment_gives_the_documented_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    configuration = read(Environment({}))
    assert configuration.home == tmp_path / ".tito"
    assert (configuration.bind, configuration.port) == ("127.0.0.1", 8000)
    assert (configuration.history_policy, configuration.on_nonlinear) == ("tree", "reset")
    assert configuration.backend == "demo"
    assert configuration.auth == "off"
    assert configuration.export_url == str(tmp_path / ".tito" / "exports")
    assert configuration.pinned == frozenset()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TITO_PORT", "65536"),
        ("TITO_PORT", "http"),
        ("TITO_BACKEND", "gpt"),
        ("TITO_HISTORY_POLICY", "forest"),
        ("TITO_ON_NONLINEAR", "ignore"),
        ("TITO_ON_TRUNCATED", "drop"),
        ("TITO_RETRY_POLICY", "never"),
        ("TITO_AUTH", "basic"),
        ("TITO_ON_DISCONNECT", "wait"),
        ("TITO_ENGINE_TIMEOUT", "0"),
        ("TITO_MAX_NODES", "0"),
        ("TITO_MAX_BODY_MB", "2000"),
        ("TITO_KEEPALIVE_S", "0"),
        ("TITO_HEALING", "perhaps"),
        ("TITO_CHAT_TEMPLATE_KWARGS", "enable_thinking"),
    ],
)
def test_nonsense_stops_the_start(name: str, value: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=name):
        read(Environment({name: value}))


def test_each_process_has_an_instance_id_of_its_own() -> None:
    assert read(Environment({})).instance_id != read(Environment({})).instance_id


@pytest.mark.parametrize(("policy", "rule"), [("tree", "refuse"), ("linear", "close"), ("rollback", "join")])
def test_truncated_turns_follow_the_policy_unless_set(policy: str, rule: str) -> None:
    assert read(Environment({})).truncation_rule(policy) == rule
    assert read(Environment({"TITO_ON_TRUNCATED": "close"})).truncation_rule(policy) == "close"
