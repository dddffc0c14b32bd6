"""Audits read what a real server stored; what it commits stays, so each test has sessions of its own."""

from collections.abc import Iterator

import pytest

from tests.client import Client
from tests.fakes.engine import FakeEngine
from tests.integration.test_cases import toy_server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of them need the migrated database."""
    for item in items:
        if "auditing" in item.path.parts:
            item.add_marker(pytest.mark.django_db)


@pytest.fixture(scope="module")
def toy(tmp_path_factory, django_db_setup, django_db_blocker) -> Iterator[tuple[Client, FakeEngine]]:
    """A server with the toy tokenizer."""
    with django_db_blocker.unblock(), toy_server(tmp_path_factory.mktemp("toy")) as pair:
        yield pair
