"""The documents of exports: field lists are those of the code, and the training loops run."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from trainer_export.jobs.filters import Filters
from trainer_export.jobs.request import ExportRules
from trainer_export.renderers import profile_renderer
from trainer_export.shapes import SHAPES
from trainer_export.shapes.columns import Column

DOCS = Path(__file__).parent.parent.parent / "docs"


def table(columns: Sequence[Column]) -> str:
    lines = ["| column | kind | meaning |", "|---|---|---|"]
    for column in columns:
        lines.append(_line(column.name, column))
        lines += [_line(f"{column.name}[].{field.name}", field) for field in column.fields]
    return "\n".join(lines)


def _line(name: str, column: Column) -> str:
    kind = str(column.kind) + (", or null" if column.optional else "")
    return f"| `{name}` | {kind} | {column.meaning} |"


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_field_lists_are_those_of_the_code(name: str) -> None:
    text = (DOCS / "exports.md").read_text(encoding="utf-8")
    section = text.partition(f"### `{name}`")[2].partition("\n### ")[0]
    assert f"`{SHAPES[name].schema}`" in section
    assert table(SHAPES[name].columns) in section


@pytest.mark.parametrize("of", [Filters, ExportRules])
def test_every_filter_and_rule_is_described(of: type) -> None:
    text = (DOCS / "exports.md").read_text(encoding="utf-8")
    assert [name for name in of.__slots__ if f"`{name}`" not in text] == []


def loops() -> list[str]:
    text = (DOCS / "training-loops.md").read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_there_are_loops() -> None:
    assert len(loops()) == 3


@pytest.mark.parametrize("number", range(3))
def test_the_training_loops_run_as_they_stand(toy, number: int) -> None:
    profile_renderer.cache_clear()
    client, engine = toy
    seen: list[object] = []

    def run_agent(base_url: str, api_key: str) -> float:
        session = base_url.split("/sessions/")[1].split("/", maxsplit=1)[0]
        from tests.client import user
        from tests.fakes.engine import Reply
        from tests.integration.test_cases import says

        engine.script(Reply([100, 2], message=says("ab")))
        assert client.chat(session, [user("hello")]).status == 200
        return 1.0

    names = {"SERVER": client.url, "TOKEN": None, "run_agent": run_agent, "train": seen.append}
    exec(compile(loops()[number], f"training-loops.md[{number}]", "exec"), names)
    assert seen
