"""Renderers by their names in settings; whatever does not work says why."""

from pathlib import Path
from typing import Any

import pytest

from sessions_app.rendering import factory
from sessions_app.rendering.protocol import Renderer
from tests.rendering.support import HISTORY
from tests.rendering.test_package_renderer import qwen_tokenizer

BYTES = str(HISTORY / "config/tokenizer")
CHATML = HISTORY / "config/chatml.jinja"


def load(
    spec: str,
    model: str = BYTES,
    template: Path | None = CHATML,
    tool_parser: str = "",
    reasoning_parser: str = "",
    **kwargs: Any,
) -> Renderer:
    return factory.load_renderer(
        spec,
        model=model,
        chat_template=template,
        kwargs=kwargs,
        tool_parser=tool_parser,
        reasoning_parser=reasoning_parser,
    )


@pytest.mark.parametrize("spec", ["template", "template:default", "template:qwen3", "template:glm47"])
def test_renderers_carry_their_names(spec: str) -> None:
    assert load(spec).name == spec


@pytest.mark.parametrize(
    "spec", ["", "nope", "template:", "template:nope", "auto:x", "renderers", "renderers:nope"]
)
def test_unknown_names_are_refused_with_the_known_ones(spec: str) -> None:
    with pytest.raises(ValueError, match="TITO_RENDERER"):
        load(spec)


def test_a_missing_folder_is_said_to_be_missing() -> None:
    with pytest.raises(ValueError, match="tokenizer folder '/nonexistent' does not exist"):
        load("template", model="/nonexistent")


def test_a_folder_without_a_tokenizer_cannot_be_loaded(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be loaded"):
        load("template", model=str(tmp_path))


def test_a_tokenizer_without_template_asks_for_one() -> None:
    with pytest.raises(ValueError, match="has no chat template; set TITO_CHAT_TEMPLATE"):
        load("template", template=None)


def test_a_template_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        load("template", template=tmp_path / "x.jinja")


def test_launch_kwargs_against_a_familys_constant() -> None:
    with pytest.raises(ValueError, match=r"TITO_CHAT_TEMPLATE_KWARGS: .* GLM47TITOTokenizer"):
        load("template:glm47", clear_thinking=True)


def tools_of(spec: str, tool_parser: str = "") -> str:
    """The class that reads the calls."""
    renderer: Any = load(spec, tool_parser=tool_parser)
    return type(renderer.parser.tools).__name__


@pytest.mark.parametrize(
    ("spec", "reader"),
    [
        ("template", "Qwen3ToolParser"),
        ("template:default", "Qwen3ToolParser"),
        ("template:kimi25", "Qwen3ToolParser"),
        ("template:qwen3", "Qwen3ToolParser"),
        ("template:nemotron3", "Qwen35ToolParser"),
        ("template:glm47", "GlmToolParser"),
        ("template:kimi26", "KimiToolParser"),
    ],
)
def test_a_parser_that_is_not_set_is_the_familys(spec: str, reader: str) -> None:
    assert tools_of(spec) == reader


@pytest.mark.parametrize("spec", ["template", "template:default", "template:kimi25", "template:glm47"])
def test_a_parser_that_agrees_or_that_no_family_gives_is_taken(spec: str) -> None:
    assert tools_of(spec, "glm") == "GlmToolParser"


@pytest.mark.parametrize("tool_parser", ["qwen3", "none"])
def test_a_tool_parser_that_disagrees_with_the_family_is_refused_naming_both(tool_parser: str) -> None:
    with pytest.raises(ValueError, match=rf"TITO_TOOL_PARSER='{tool_parser}' .*template:glm47.* by 'glm'"):
        load("template:glm47", tool_parser=tool_parser)


def test_a_reasoning_parser_that_disagrees_with_the_family_is_refused_naming_both() -> None:
    with pytest.raises(ValueError, match=r"TITO_REASONING_PARSER='none' .*template:qwen3.* by 'think'"):
        load("template:qwen3", reasoning_parser="none")


def test_auto_takes_a_known_model_by_its_exact_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factory, "load_tokenizer", lambda model: qwen_tokenizer())
    assert load("auto", model="Qwen/Qwen3-8B", template=None).name == "renderers:qwen3"
    assert load("auto", model="Qwen/Qwen3-8B", template=CHATML).name == "template"
    assert load("auto", model="me/Qwen3-8B-tuned", template=CHATML).name == "template"


def test_a_family_that_does_not_fit_the_tokenizer_is_refused() -> None:
    with pytest.raises(ValueError, match=r"renderers:minimax-m2 does not fit .*: Special token"):
        load("renderers:minimax-m2")


def test_auto_falls_back_to_the_template_where_the_family_does_not_fit(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    demo = factory.load_tokenizer(str(factory.DEMO_MODEL))
    monkeypatch.setattr(factory, "load_tokenizer", lambda model: demo)
    assert load("auto", model="MiniMaxAI/MiniMax-M2", template=None).name == "template"
    assert "falls back to the chat template" in caplog.text
