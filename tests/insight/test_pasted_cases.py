"""Turns pasted into `tests/cases/`, one file each: every one of them is a test."""

from pathlib import Path

import pytest

from tests.pasted_case import NotHere, check_case

CASES = sorted((Path(__file__).parents[1] / "cases").glob("*.json"))


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_a_pasted_turn_still_holds(file: Path) -> None:
    try:
        check_case(file.read_text())
    except NotHere as missing:
        pytest.skip(f"not checked: {missing}")
