"""Integration tests talk to a whole server over HTTP; what it commits stays, so each test has sessions of
its own.
"""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.fakes.engine import FakeEngine
from tests.integration.servers import shared_server, toy_environment


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of them need the migrated database."""
    for item in items:
        if "integration" in item.path.parts:
            item.add_marker(pytest.mark.django_db)


@pytest.fixture(scope="module")
def engine() -> Iterator[FakeEngine]:
    """What the servers of a module ask."""
    with FakeEngine() as engine:
        yield engine


@pytest.fixture(scope="module")
def served(
    engine: FakeEngine, django_db_setup: None, django_db_blocker: Any
) -> Iterator[tuple[httpx.Client, FakeEngine]]:
    """A plain client of a server with the toy model, and the engine that the server asks."""
    with (
        shared_server(django_db_blocker, toy_environment(engine)) as url,
        httpx.Client(base_url=url) as client,
    ):
        yield client, engine
