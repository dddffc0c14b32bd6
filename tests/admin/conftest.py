"""One seeded server for the operator screens; what it commits stays for all of their tests."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client

import tito_project.urls  # noqa: F401  (loads the screens, which tests choose their parameters from)
from sessions_app.admin.roles import complete_roles
from tests.admin.seeding import Login, Seeds, Server, seed, seeded_server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of them need the migrated database."""
    for item in items:
        if "admin" in item.path.parts:
            item.add_marker(pytest.mark.django_db)


@pytest.fixture(scope="session")
def seeded(django_db_setup: None, django_db_blocker) -> Iterator[tuple[Server, Seeds]]:
    """The server, and the seeded sessions."""
    with django_db_blocker.unblock():
        with seeded_server() as server:
            yield server, seed(server)
        connection.close_pool()  # what the server's threads used; else the test database cannot go


@pytest.fixture(scope="session")
def seeds(seeded: tuple[Server, Seeds]) -> Seeds:
    """The seeded sessions."""
    return seeded[1]


@pytest.fixture
def staff(client: Client) -> Client:
    """A browser of an administrator."""
    client.force_login(User.objects.create(username="root", is_staff=True, is_superuser=True))
    return client


@pytest.fixture
def login(client: Client) -> Login:
    """A browser of somebody with a role."""

    def as_role(role: str) -> Client:
        complete_roles()
        user = User.objects.create(username=role, is_staff=True)
        user.groups.add(Group.objects.get(name=role))
        client.force_login(user)
        return client

    return as_role
