"""Published tokenizers and templates, where the machine has them: REAL_TOKENIZERS names a folder of folders.

Each subfolder is loaded as it is (tokenizer, template) and must not lose or double anything at its seams.
"""

import os
from pathlib import Path

import pytest

from sessions_app.rendering.factory import load_renderer
from sessions_app.rendering.verification import FAIL, verify

ROOT = os.environ.get("REAL_TOKENIZERS", "")
FOLDERS = sorted(path.parent for path in Path(ROOT).rglob("tokenizer.json")) if ROOT else []


@pytest.mark.skipif(
    not FOLDERS, reason="REAL_TOKENIZERS names no folder with tokenizers: real templates are NOT tested"
)
@pytest.mark.parametrize("folder", FOLDERS or [Path()], ids=str)
def test_a_published_template_keeps_its_seams(folder: Path) -> None:
    try:
        renderer = load_renderer(
            "template",
            model=str(folder),
            chat_template=None,
            kwargs={},
            tool_parser="qwen3",
            reasoning_parser="think",
        )
    except ValueError as error:
        if "no chat template" in str(error):
            pytest.skip(str(error))
        raise
    broken = [check for check in verify(renderer) if check.area == "seam" and check.verdict == FAIL]
    assert broken == []
