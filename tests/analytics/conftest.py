"""The seeded sessions of the operator screens serve here too."""

import pytest

from tests.admin.conftest import seeded, seeds

__all__ = ["seeded", "seeds"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of them need the migrated database."""
    for item in items:
        if "analytics" in item.path.parts:
            item.add_marker(pytest.mark.django_db)
