"""A server with a scripted engine, and a session of it."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.fakes.engine import FakeEngine
from tests.integration.servers import shared_server, toy_environment


@pytest.fixture(scope="package")
def served(django_db_setup: None, django_db_blocker: Any) -> Iterator[tuple[str, FakeEngine]]:
    with FakeEngine() as engine, shared_server(django_db_blocker, toy_environment(engine)) as url:
        yield url, engine


@pytest.fixture
def session(served: tuple[str, FakeEngine]) -> str:
    """The URL of a session whose arguments may come back respelled."""
    response = httpx.post(f"{served[0]}/sessions", json={"harness": "anthropic"})
    return f"{served[0]}/sessions/{response.json()['session_id']}"


@pytest.fixture
def engine(served: tuple[str, FakeEngine]) -> FakeEngine:
    return served[1]
