"""Fixtures of the project tests."""

from collections.abc import Iterator

import pytest

from tests.project.homes import temporary_home
from tito_project.embedded.places import Places


@pytest.fixture
def places() -> Iterator[Places]:
    """A prepared home of its own."""
    with temporary_home() as made:
        yield made
