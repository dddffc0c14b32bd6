"""Integration tests talk to a whole server over HTTP; what it commits stays, so each test has sessions of
its own.
"""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of them need the migrated database."""
    for item in items:
        if "integration" in item.path.parts:
            item.add_marker(pytest.mark.django_db)
