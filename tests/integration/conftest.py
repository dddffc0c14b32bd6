"""Integration tests talk to a whole server over HTTP and never roll back: each test has sessions of its own."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def committed_database(django_db_setup, django_db_blocker) -> Iterator[None]:
    """The migrated test database, open to every thread."""
    with django_db_blocker.unblock():
        yield
        from django.db import connection

        connection.close()
        connection.close_pool()
