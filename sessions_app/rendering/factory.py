"""Renderers from their names in settings: `auto`, `template`, `template:FAMILY`.

Invariant: what cannot be loaded is a ValueError whose text names the setting and the remedy; nothing is
guessed.
"""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from sessions_app.errors import InvalidTemplateKwargs
from sessions_app.rendering.chat_template import ChatTemplate
from sessions_app.rendering.families.facts import FAMILIES
from sessions_app.rendering.family_renderer import FamilyRenderer
from sessions_app.rendering.parsers.registry import reply_parser
from sessions_app.rendering.protocol import Renderer
from sessions_app.rendering.template_renderer import TemplateRenderer
from sessions_app.rendering.tokenizer import ChatTokenizer

DEMO_MODEL = Path(__file__).parent / "demo" / "tokenizer"
"""The tokenizer shipped with the project."""


def load_renderer(
    spec: str,
    *,
    model: str,
    chat_template: Path | None,
    kwargs: Mapping[str, Any],
    tool_parser: str,
    reasoning_parser: str,
) -> Renderer:
    """The renderer that the settings name. `model`: tokenizer folder or hub name; "" = the demo tokenizer."""
    tokenizer = load_tokenizer(model or str(DEMO_MODEL))
    kind, _, family = spec.partition(":")
    if kind not in ("auto", "template") or (kind == "auto" and family) or (family and family not in FAMILIES):
        names = ", ".join(f"template:{name}" for name in FAMILIES)
        raise ValueError(f"TITO_RENDERER={spec!r} is not one of: auto, template, {names}")
    template = _template(tokenizer, chat_template)
    parser = reply_parser(tool_parser, reasoning_parser)
    try:
        if family:
            return FamilyRenderer(tokenizer, template, parser, kwargs, FAMILIES[family])
        return TemplateRenderer(tokenizer, template, parser, kwargs)
    except InvalidTemplateKwargs as error:
        raise ValueError(f"TITO_CHAT_TEMPLATE_KWARGS: {error}") from error


@lru_cache(maxsize=8)
def load_tokenizer(model: str) -> ChatTokenizer:
    """One copy of a tokenizer in a process."""
    return ChatTokenizer.load(model)


def _template(tokenizer: ChatTokenizer, file: Path | None) -> ChatTemplate:
    if file is not None:
        try:
            return ChatTemplate(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise ValueError(f"TITO_CHAT_TEMPLATE={str(file)!r} cannot be read: {error.strerror}") from error
    if not tokenizer.chat_template:
        raise ValueError(
            f"tokenizer {tokenizer.model!r} has no chat template; set TITO_CHAT_TEMPLATE to a file"
        )
    return ChatTemplate(tokenizer.chat_template)
