"""Recorded verdicts of the reference matchers: each row by predicate and, where there is one, by key."""

import json
from pathlib import Path

import pytest

from sessions_app.history.matchers.registry import resolve_matcher

CASES = Path(__file__).parent.parent / "vectors" / "history" / "matcher_cases.jsonl"
ROWS = [json.loads(line) for line in CASES.read_text().splitlines()]
VERDICTS = [
    pytest.param(row["stored"], row["replayed"], name, expected, id=f"{row['case']}-{name}")
    for row in ROWS
    for name, expected in row["match"].items()
]


@pytest.mark.parametrize(("stored", "replayed", "name", "expected"), VERDICTS)
def test_the_recorded_verdict_holds_in_both_directions(stored, replayed, name, expected):
    matcher = resolve_matcher(name)
    assert matcher.matches(stored, replayed) is expected
    assert matcher.matches(replayed, stored) is expected


@pytest.mark.parametrize(("stored", "replayed", "name", "expected"), VERDICTS)
def test_keys_agree_with_the_recorded_verdict(stored, replayed, name, expected):
    keys = [resolve_matcher(name).key(message) for message in (stored, replayed)]
    assert None in keys or (keys[0] == keys[1]) is expected


def test_most_recorded_messages_have_a_key():
    keyless = [row["case"] for row in ROWS if resolve_matcher("loose_tool_call").key(row["stored"]) is None]
    assert len(keyless) < len(ROWS) / 5
