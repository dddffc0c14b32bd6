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


def names_in(path: str) -> list[str]:
    """The parameters of a path."""
    return [piece.partition("}")[0] for piece in path.split("{")[1:]]


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


@pytest.fixture(scope="module")
def known(url: str) -> dict[str, str]:
    """Names of what is there: most of what is made up is not found, and nothing is asked of it."""
    session = httpx.post(f"{url}/sessions").json()["session_id"]
    said = httpx.post(f"{url}/sessions/{session}/v1/responses", json={"input": "hi"}).json()
    node = httpx.get(f"{url}/api/sessions/{session}/nodes").json()["nodes"][0]
    return {"session_id": session, "response_id": said["id"], "node_id": f"{session}:{node['seq']}"}


@pytest.mark.parametrize("there", [False, True])
def test_nothing_that_is_allowed_makes_the_server_fail(
    described: Any, known: dict[str, str], there: bool
) -> None:
    operations = [found.ok() for found in described.get_all_operations()]
    if there:
        operations = [each for each in operations if set(known) & set(names_in(each.path))]
        operations = [each for each in operations if each.method not in ("delete", "DELETE")]
    assert len(operations) > 20
    answers: set[int] = set()
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
            if there:
                here = {name: known[name] for name in names_in(case.operation.path) if name in known}
                case.path_parameters = {**(case.path_parameters or {}), **here}
            answers.add(case.call_and_validate(checks=[not_a_server_error]).status_code)

        send()
    assert {200, 400, 404} <= answers


def test_a_nul_in_a_filter_is_a_clear_refusal(url: str) -> None:
    response = httpx.get(f"{url}/api/sessions", params={"rollout_id": "a\x00b"})
    assert (response.status_code, response.json()["code"]) == (400, "invalid_argument")
