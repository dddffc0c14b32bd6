"""The documentation says what the code does: templates run, every field and reason is described."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.samples.builders import RULES, forest_of, turn
from trainer_export.samples.arguments import SamplesArguments
from trainer_export.samples.hooks import Hooks
from trainer_export.samples.payload import samples_payload
from trainer_export.samples.pickers import PICKERS, keep_all
from trainer_export.samples.postprocessors import PATTERNED, POSTPROCESSORS, default_postprocess
from trainer_export.samples.reasons import Reason
from trainer_export.samples.schema import SAMPLE_SCHEMA, STOPS, TURN

DOCS = Path(__file__).parents[2] / "docs"
HOOKS = (DOCS / "hooks.md").read_text()
SCHEMA = (DOCS / "sample-schema.md").read_text()


def templates() -> dict[str, Any]:
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", HOOKS, re.DOTALL):
        exec(block, names)
    return names


def run(picker: Any, postprocessor: Any, metadata: Any = None) -> list[Any]:
    forest = forest_of(turn(0, None, [1], [2]), turn(1, None, [3], [4]), turn(2, 1, [5], [6]))
    hooks = Hooks("picker", picker, "postprocessor", postprocessor)
    return samples_payload(forest, SamplesArguments(metadata=metadata), hooks, RULES).samples


def test_the_template_of_a_picker_runs():
    (sample,) = run(templates()["newest_root_only"], default_postprocess)
    assert sample.leaf.last.seq == 2


def test_the_template_of_a_postprocessor_runs():
    rows = run(keep_all, templates()["reward_of_the_branch"], {"rewards": {"2": 1.0}})
    assert [sample.reward for sample in rows] == [0.0, 1.0]


def test_every_builtin_hook_is_described():
    for name in (*PICKERS, *POSTPROCESSORS, *(f"{name}:PATTERN" for name in PATTERNED)):
        assert f"| `{name}` |" in HOOKS


@pytest.mark.parametrize(
    "name", [*SAMPLE_SCHEMA["properties"], *TURN["properties"], *map(str, Reason), *STOPS]
)
def test_every_field_and_reason_is_described(name: str):
    assert f"`{name}`" in SCHEMA


def test_the_published_schema_is_the_one_in_the_code():
    assert json.loads((DOCS / "sample.schema.json").read_text()) == SAMPLE_SCHEMA
