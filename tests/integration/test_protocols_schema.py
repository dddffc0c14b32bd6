"""The OpenAPI document: complete, valid, and nothing that it allows makes the server fail."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from drf_spectacular.validation import validate_schema
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error

from sessions_app.api.urls import ROUTES
from tests.fakes.engine import FakeEngine
from tests.integration.servers import shared_server, toy_environment


@pytest.fixture(scope="module")
def url(django_db_setup: None, django_db_blocker: Any) -> Iterator[str]:
    with FakeEngine() as engine:
        environment = toy_environment(engine) | {"TITO_AUTO_SESSIONS": "true"}
        with shared_server(django_db_blocker, environment) as url:
            yield url


@pytest.fixture(scope="module")
def document(url: str) -> dict[str, Any]:
    response = httpx.get(f"{url}/schema/")
    assert response.headers["content-type"] == "application/json"
    return response.json()


@pytest.fixture(scope="module")
def described(document: dict[str, Any], url: str) -> Any:
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=url)
    return schema


def test_every_route_is_described(document: dict[str, Any]) -> None:
    described = {path.replace("{", "<").replace("}", ">") for path in document["paths"]}
    for pattern, _ in ROUTES:
        path = "/" + pattern.replace("(?P", "").replace("[^/]+)", "").replace(".+)", "")
        assert path in described, pattern


def test_the_document_is_valid_and_every_operation_is_named_once(document: dict[str, Any]) -> None:
    validate_schema(document)
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(names) == len(set(names))
    assert all(operation["summary"] and operation["tags"] for operation in operations)


def test_every_named_shape_is_there(document: dict[str, Any]) -> None:
    text = json.dumps(document)
    used = {piece.partition('"')[0] for piece in text.split("#/components/schemas/")[1:]}
    assert used <= set(document["components"]["schemas"])


def test_nothing_that_is_allowed_makes_the_server_fail(described: Any) -> None:
    operations = [found.ok() for found in described.get_all_operations()]
    assert len(operations) > 30
    for operation in operations:

        @settings(
            max_examples=4,
            deadline=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def send(case: Any) -> None:
            (case.query or {}).pop("wait_s", None)
            case.call_and_validate(checks=[not_a_server_error])

        send()


def test_a_nul_in_a_filter_is_a_clear_refusal(url: str) -> None:
    response = httpx.get(f"{url}/api/sessions", params={"rollout_id": "a\x00b"})
    assert (response.status_code, response.json()["code"]) == (400, "invalid_argument")
