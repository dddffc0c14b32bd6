"""The typed environment reader."""

from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from tito_project.env import Environment


@pytest.mark.parametrize("spelling", ["1", "true", "TRUE", "yes", "On", " on "])
def test_true_in_every_spelling(spelling: str) -> None:
    assert Environment({"X": spelling}).flag("X", False) is True


@pytest.mark.parametrize("spelling", ["0", "false", "No", "OFF"])
def test_false_in_every_spelling(spelling: str) -> None:
    assert Environment({"X": spelling}).flag("X", True) is False


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("maybe", lambda env: env.flag("X", False)),
        ("2", lambda env: env.flag("X", False)),
        ("12.5", lambda env: env.integer("X", 1)),
        ("-1", lambda env: env.integer("X", 1)),
        ("70000", lambda env: env.integer("X", 1, most=65535)),
        ("ten", lambda env: env.optional_integer("X")),
        ("nan", lambda env: env.number("X", 1.0)),
        ("inf", lambda env: env.number("X", 1.0)),
        ("-0.1", lambda env: env.optional_number("X")),
        ("fast", lambda env: env.number("X", 1.0)),
        ("blue", lambda env: env.choice("X", "red", ("red", "green"))),
        ("{", lambda env: env.json_object("X")),
        ("[1]", lambda env: env.json_object("X")),
    ],
)
def test_nonsense_is_an_error_that_names_the_variable(value: str, read: Callable[[Environment], Any]) -> None:
    with pytest.raises(ImproperlyConfigured, match="X"):
        read(Environment({"X": value}))


def test_empty_and_blank_count_as_unset() -> None:
    env = Environment({"A": "", "B": "  "})
    assert env.text("A", "default") == "default"
    assert env.integer("B", 7) == 7
    assert env.pinned == set()


def test_what_was_set_is_pinned() -> None:
    env = Environment({"A": "1", "B": "2"})
    env.integer("A", 0)
    env.integer("C", 0)
    assert env.pinned == {"A"}


def test_a_listing_drops_blanks() -> None:
    assert Environment({"X": " a, b ,,c,"}).listing("X", "") == ("a", "b", "c")
