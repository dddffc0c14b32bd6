"""One seeded server for the operator screens; what it commits stays for all of their tests."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.admin.seeding import Seeds, seed, seeded_server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of them need the migrated database."""
    for item in items:
        if "admin" in item.path.parts:
            item.add_marker(pytest.mark.django_db)


@pytest.fixture(scope="session")
def seeds(django_db_setup: None, django_db_blocker) -> Iterator[Seeds]:
    """The seeded sessions."""
    with django_db_blocker.unblock(), seeded_server() as server:
        yield seed(server)


@pytest.fixture
def staff(client: Client) -> Client:
    """A browser of an administrator."""
    client.force_login(User.objects.create(username="root", is_staff=True, is_superuser=True))
    return client
