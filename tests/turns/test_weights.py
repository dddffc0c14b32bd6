"""An engine that keeps its old weights after an update is warned about, once."""

import logging

import pytest

from sessions_app.turns.weights import WeightWatch


@pytest.fixture
def watch() -> WeightWatch:
    return WeightWatch()


def test_a_version_that_does_not_follow_is_told_once(watch, caplog) -> None:
    with caplog.at_level(logging.WARNING):
        watch.note("e1", "v1", "7")
        watch.note("e1", "v2", "7")
        watch.note("e1", "v2", "7")
    assert len(caplog.records) == 1
    assert watch.stuck == {"e1": "7"}


def test_a_version_that_follows_late_is_no_longer_stuck(watch) -> None:
    watch.note("e1", "v1", "7")
    watch.note("e1", "v2", "7")
    watch.note("e1", "v2", "8")
    assert watch.stuck == {}


def test_engines_that_follow_or_say_nothing_are_fine(watch, caplog) -> None:
    watch.note("e1", "v1", "7")
    watch.note("e1", "v2", "8")
    watch.note("e2", "v1", "v1")
    watch.note("e2", "v2", "v2")
    watch.note("e3", None, "1")
    watch.note("e3", "v1", None)
    assert watch.stuck == {}
    assert caplog.records == []
