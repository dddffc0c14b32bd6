"""Recorded merges and comparisons of the reference, one test a row."""

import json
from typing import Any

import pytest

from tests.rendering.support import HISTORY, array, family, fed


def rows(name: str) -> list[Any]:
    return [json.loads(line) for line in (HISTORY / name).read_text().splitlines()]


@pytest.mark.parametrize("row", rows("tito_merge.jsonl"))
def test_the_prompt_is_the_recorded_one(row: dict[str, Any]) -> None:
    renderer = family(row["family"], row["template"])
    extension = renderer.extend(
        array(row["pretokenized"]), row["old_messages"][-1], row["appended"], row["tools"]
    )
    assert fed(row["pretokenized"], extension) == row["ids"]
    assert extension.trim <= renderer.max_trim_tokens
    assert renderer.template_kwargs == row["kwargs"]


@pytest.mark.parametrize("row", rows("comparator.jsonl"))
def test_the_mismatches_are_the_recorded_ones(row: dict[str, Any]) -> None:
    found = family(row["family"]).compare(array(row["expected_ids"]), array(row["actual_ids"]))
    assert [mismatch.as_json() for mismatch in found] == row["mismatches"]
