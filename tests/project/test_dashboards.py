"""The dashboard and the alert rules ask for what /metrics tells."""

import json
import re
from pathlib import Path

import pytest

from tests.client import Client, user
from tests.fakes.engine import Reply
from tests.integration.test_cases import says, toy_server

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"


def asked() -> set[str]:
    dashboard = json.loads((DOCS / "grafana.json").read_text(encoding="utf-8"))
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    expressions += re.findall(r"expr: (.*)", (DOCS / "alerts.yml").read_text(encoding="utf-8"))
    assert len(expressions) > 20
    return {name for expression in expressions for name in re.findall(r"\btito_\w+", expression)}


def told(client: Client) -> set[str]:
    text = client.call("GET", "/metrics").body.decode()
    typed = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
    return typed | set(re.findall(r"^(tito_\w+?)(?:\{| )", text, re.MULTILINE))


@pytest.mark.django_db
def test_every_metric_of_the_dashboard_and_of_the_rules_exists(tmp_path) -> None:
    with toy_server(tmp_path, TITO_METRICS_OPEN="on") as (client, engine):
        engine.script(Reply([100, 2], message=says("ab")))
        assert client.chat(client.create(), [user("hello")]).status == 200
        known = told(client)
    assert asked() - known == set()
    guide = (DOCS / "operations.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(tito_\w+)", guide)) - known == set()
