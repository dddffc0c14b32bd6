"""The seeded sessions of the operator screens serve here too."""

import pytest

from tests.admin.conftest import seeded, seeds

__all__ = ["seeded", "seeds"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that ask for seeded sessions need the migrated database."""
    for item in items:
        if "insight" in item.path.parts and {"seeds", "seeded"} & {*getattr(item, "fixturenames", ())}:
            item.add_marker(pytest.mark.django_db)
