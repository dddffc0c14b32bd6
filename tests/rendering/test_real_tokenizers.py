"""Published tokenizers and templates, where the machine has them: REAL_TOKENIZERS names a folder of folders.

Each subfolder is loaded as it is (tokenizer, template) and must not lose or double anything at its seams; so
must every family of the package `renderers` that renders a conversation as the folder's template does.
"""

import os
from pathlib import Path

import numpy as np
import pytest

from sessions_app.errors import TitoError
from sessions_app.rendering.factory import load_renderer
from sessions_app.rendering.package.catalogue import family_names
from sessions_app.rendering.protocol import Message, Renderer
from sessions_app.rendering.verification import FAIL, verify

ROOT = os.environ.get("REAL_TOKENIZERS", "")
FOLDERS = sorted(path.parent for path in Path(ROOT).rglob("tokenizer.json")) if ROOT else []
USER: Message = {"role": "user", "content": "What is in the folder?"}

pytestmark = pytest.mark.skipif(
    not FOLDERS, reason="REAL_TOKENIZERS names no folder with tokenizers: real templates are NOT tested"
)


def renderer_of(folder: Path, spec: str) -> Renderer:
    return load_renderer(
        spec,
        model=str(folder),
        chat_template=None,
        kwargs={},
        tool_parser="qwen3",
        reasoning_parser="think",
    )


def of_template(folder: Path) -> Renderer:
    try:
        return renderer_of(folder, "template")
    except ValueError as error:
        if "no chat template" in str(error):
            pytest.skip(str(error))
        raise


def broken_seams(renderer: Renderer) -> list[str]:
    return [f"{check.name}: {check.detail}" for check in verify(renderer)
            if check.area == "seam" and check.verdict == FAIL]  # fmt: skip


@pytest.mark.parametrize("folder", FOLDERS or [Path()], ids=str)
def test_a_published_template_keeps_its_seams(folder: Path) -> None:
    assert broken_seams(of_template(folder)) == []


def fitting(folder: Path) -> list[Renderer]:
    """Families that print a question as the folder's template does."""
    wanted, found = of_template(folder).render([USER], None), []
    for family in family_names():
        try:
            renderer = renderer_of(folder, f"renderers:{family}")
            if np.array_equal(renderer.render([USER], None), wanted):
                found.append(renderer)
        except (ValueError, TitoError):
            continue
    return found


@pytest.mark.parametrize("folder", FOLDERS or [Path()], ids=str)
def test_the_families_of_a_published_model_keep_their_seams(folder: Path) -> None:
    families = fitting(folder)
    assert {family.name: broken_seams(family) for family in families if broken_seams(family)} == {}
