"""docs/rendering.md against the code: families with their facts, parsers, the package's families."""

import re
from pathlib import Path

import pytest

from sessions_app.models.choices import DRIFT_OUTCOMES
from sessions_app.rendering.families.facts import FAMILIES, Boundary
from sessions_app.rendering.package.catalogue import family_names
from sessions_app.rendering.parsers.registry import REASONING_PARSERS, TOOL_PARSERS

TEXT = (Path(__file__).parents[2] / "docs/rendering.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return TEXT.split(f"\n## {title}")[1].split("\n## ")[0]


def rows(text: str) -> list[list[str]]:
    """Cells of table rows whose first cell is a name."""
    lines = [line.replace(r"\|", "¦") for line in text.splitlines() if line.startswith("| `")]
    return [[cell.strip().replace("¦", "|") for cell in line.strip("|").split("|")] for line in lines]


def names(text: str) -> list[str]:
    return [re.match(r"`([^`]+)`", cells[0])[1] for cells in rows(text)]


def test_all_families_are_listed() -> None:
    assert names(section("`template:FAMILY`")) == list(FAMILIES)


@pytest.mark.parametrize("cells", rows(section("`template:FAMILY`")), ids=lambda cells: cells[0])
def test_a_family_has_the_facts_of_the_code(cells: list[str]) -> None:
    facts = FAMILIES[cells[0].strip("`")]
    assert cells[1].split(", ") == sorted(facts.append_roles)
    assert cells[2].startswith("concatenate") is (facts.boundary is Boundary.CONCATENATE)
    assert facts.boundary is Boundary.CONCATENATE or all(f"`{t}`" in cells[2] for t in facts.boundary_tokens)
    assert int(cells[3]) == facts.max_trim_tokens
    assert (cells[4] == "–") is not bool(facts.trailing)
    constants = ", ".join(f"`{name}={str(value).lower()}`" for name, value in facts.constants.items())
    assert cells[5] == (constants or "–")
    parsers = [f"`{name}`" for name in (facts.tool_parser, facts.reasoning_parser) if name]
    assert cells[6] == (", ".join(parsers) or "any")


def test_all_families_of_the_package_are_listed() -> None:
    listed = section("`renderers:FAMILY`").strip().split("\n\n")[0]
    assert sorted(re.findall(r"`([^`]+)`", listed)) == sorted(family_names())


def test_all_parsers_are_listed() -> None:
    tools, reasoning = section("Parsers").split("| `TITO_REASONING_PARSER`")
    assert set(names(tools)[1:]) == set(TOOL_PARSERS)
    assert set(names(reasoning)) == set(REASONING_PARSERS)


def test_all_outcomes_of_the_audit_are_listed() -> None:
    assert names(section("Drift")) == [name for name, _ in DRIFT_OUTCOMES]
