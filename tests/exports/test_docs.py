"""The documents of exports: field lists are those of the code, and the training loops run."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.client import user
from tests.exports.exporting import export, linear
from tests.fakes.engine import Reply
from tests.integration.test_cases import says
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


def readme_loops() -> list[str]:
    text = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    section = text.partition("\n## Training\n")[2].partition("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)


def test_there_are_loops() -> None:
    assert len(loops()) == 4
    assert len(readme_loops()) == 2


class Driver:
    """What a loop is given: the server's address, an agent that takes one turn, a step that remembers."""

    def __init__(self, client, engine, folder: Path) -> None:
        self.client, self.engine, self.folder = client, engine, folder
        self.seen: list[Any] = []

    def run(self, loop: str) -> None:
        names = {
            "SERVER": self.client.url,
            "TOKEN": None,
            "run_agent": self.run_agent,
            "train": self.seen.append,
            "FOLDER": str(self.folder),
        }
        exec(compile(loop, "loop", "exec"), names)

    def run_agent(self, base_url: str, api_key: str) -> float:
        session = base_url.split("/sessions/")[1].split("/", maxsplit=1)[0]
        self.engine.script(Reply([100, 2], message=says("ab")))
        assert self.client.chat(session, [user("hello")]).status == 200
        return 1.0


@pytest.fixture
def driver(toy, tmp_path: Path) -> Driver:
    profile_renderer.cache_clear()
    export(tmp_path, "--shape", "miles", sessions=[linear(*toy)])
    client, engine = toy
    return Driver(client, engine, tmp_path)


@pytest.mark.parametrize("number", range(4))
def test_the_training_loops_run_as_they_stand(driver: Driver, number: int) -> None:
    driver.run(loops()[number])
    assert driver.seen


def test_rows_of_files_have_the_objects_that_a_sample_is_made_of(driver: Driver) -> None:
    driver.run(loops()[3])
    ((row,),) = driver.seen
    assert row["spec_info"]["spec_verify_ct"] == 0
    assert row["prefix_cache_info"]["cached_tokens"] >= 0
    assert row["metadata"]["tito"]["trained"] == sum(row["loss_mask"])


def test_the_loops_of_the_readme_run_as_they_stand(driver: Driver) -> None:
    """The first makes a rollout and trains on it, the second is handed the group it finished."""
    for loop in readme_loops():
        driver.run(loop)
    (row,), *groups = driver.seen
    assert (row["tokens"][-2:], row["loss_mask"], row["reward"], row["weight"]) == ([100, 2], [1, 1], 1.0, 1)
    assert any("prompt-7" in uids for _, uids in groups)
    for tensors, uids in groups:
        assert {len(tensor) for tensor in tensors.values()} == {len(uids)}
        assert tensors["response_mask"].shape == tensors["responses"].shape
