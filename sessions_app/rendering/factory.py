"""Renderers from their names in settings: `auto`, `template`, `template:FAMILY`, `renderers:FAMILY`.

Invariant: what cannot be loaded is a ValueError whose text names the setting and the remedy; nothing is
guessed.
"""

import logging
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from sessions_app.errors import InvalidTemplateKwargs
from sessions_app.rendering.chat_template import ChatTemplate
from sessions_app.rendering.families.facts import FAMILIES
from sessions_app.rendering.families.parsers import chosen_parsers
from sessions_app.rendering.family_renderer import FamilyRenderer
from sessions_app.rendering.package.catalogue import family_names, known_family
from sessions_app.rendering.package.renderer import PackageRenderer
from sessions_app.rendering.parsers.registry import reply_parser
from sessions_app.rendering.parsers.reply import ReplyParser
from sessions_app.rendering.protocol import Renderer
from sessions_app.rendering.template_renderer import TemplateRenderer
from sessions_app.rendering.tokenizer import ChatTokenizer

logger = logging.getLogger(__name__)

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
    """The renderer that the settings name. `model`: tokenizer folder or hub name; "" = the demo tokenizer.
    A parser that is "" was not set."""
    kind, _, family = spec.partition(":")
    _require_known(spec, kind, family)
    facts = FAMILIES.get(family) if kind == "template" else None
    parsers = chosen_parsers(facts, tool_parser, reasoning_parser)
    tokenizer = load_tokenizer(model or str(DEMO_MODEL))
    parser = reply_parser(*parsers, tokenizer)
    try:
        if kind == "renderers":
            return _package_renderer(tokenizer, family, kwargs)
        published = (
            kind == "auto" and chat_template is None and model and not Path(model).expanduser().is_dir()
        )
        if published and (known := known_family(model)):
            return _known_renderer(tokenizer, known, parser, kwargs)
        return _template_renderer(tokenizer, chat_template, family, parser, kwargs)
    except InvalidTemplateKwargs as error:
        raise ValueError(f"TITO_CHAT_TEMPLATE_KWARGS: {error}") from error


@lru_cache(maxsize=8)
def load_tokenizer(model: str) -> ChatTokenizer:
    """One copy of a tokenizer in a process."""
    return ChatTokenizer.load(model)


def _require_known(spec: str, kind: str, family: str) -> None:
    if spec in ("auto", "template") or (kind == "template" and family in FAMILIES):
        return
    if kind == "renderers":
        names = family_names()
        if family not in names:
            raise ValueError(f"TITO_RENDERER={spec!r}: the families of renderers: are {', '.join(names)}")
        return
    names = tuple(f"template:{name}" for name in FAMILIES)
    raise ValueError(
        f"TITO_RENDERER={spec!r} is not one of: auto, template, {', '.join(names)}, renderers:FAMILY"
    )


def _template_renderer(
    tokenizer: ChatTokenizer, file: Path | None, family: str, parser: ReplyParser, kwargs: Mapping[str, Any]
) -> Renderer:
    template = _template(tokenizer, file)
    if family:
        return FamilyRenderer(tokenizer, template, parser, kwargs, FAMILIES[family])
    return TemplateRenderer(tokenizer, template, parser, kwargs)


def _package_renderer(tokenizer: ChatTokenizer, family: str, kwargs: Mapping[str, Any]) -> Renderer:
    try:
        return PackageRenderer(tokenizer, family, kwargs)
    except Exception as error:
        raise ValueError(
            f"TITO_RENDERER=renderers:{family} does not fit {tokenizer.model!r}: {error}"
        ) from error


def _known_renderer(
    tokenizer: ChatTokenizer, family: str, parser: ReplyParser, kwargs: Mapping[str, Any]
) -> Renderer:
    """The hand-written family of a published model, or its chat template where the family cannot be loaded
    here."""
    try:
        return _package_renderer(tokenizer, family, kwargs)
    except ValueError as error:
        logger.warning("renderer auto falls back to the chat template: %s", error)
        return _template_renderer(tokenizer, None, "", parser, kwargs)


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
