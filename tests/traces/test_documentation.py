"""docs/triplets.md names every outcome, every remark and every option of exports."""

from pathlib import Path

import pytest

from trainer_export.shapes import TRACE_SHAPES
from trainer_export.spans.rules import _FLAGS, _TEXTS
from trainer_export.traces.better.report import Remark, Use

TEXT = (Path(__file__).parents[2] / "docs/triplets.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("word", [*Use, *Remark, *TRACE_SHAPES, *_TEXTS, *_FLAGS])
def test_it_is_named(word):
    assert f"`{word}`" in TEXT
