"""What the installed package `renderers` offers, imported only when it is asked for."""

from functools import cache
from importlib import import_module
from typing import Any

_ANY_TEMPLATE = "default"
"""The package's own fallback over chat templates; our `template` does that job."""


@cache
def _base() -> Any:
    try:
        base = import_module("renderers.base")
        base._populate_registry()
    except ImportError as error:
        raise ValueError(f"renderers:FAMILY needs the packages renderers and httpx: {error}") from error
    return base


def family_names() -> tuple[str, ...]:
    """The families that can be asked for. Raises ValueError when the package is missing."""
    return tuple(name for name in _base().RENDERER_REGISTRY if name != _ANY_TEMPLATE)


def known_family(model: str) -> str | None:
    """The family of a published model by its exact hub name; None for any other name or without the package.

    Names are not matched loosely: checkpoints of one architecture come with different chat templates."""
    try:
        family: str | None = _base().MODEL_RENDERER_MAP.get(model)
    except ValueError:
        return None
    return family


def make(family: str, tokenizer: Any, kwargs: dict[str, Any]) -> Any:
    """A renderer of the package that keeps earlier reasoning. Raises ValueError or what the package
    raises."""
    config = import_module("renderers.configs").config_from_name(family)
    retaining = type(config)(thinking_retention="all")
    return _base().create_renderer(tokenizer, retaining, chat_template_kwargs=kwargs or None)


def tool_parser(name: str, tokenizer: Any) -> Any:
    """A tool parser of the package's registry."""
    return import_module("renderers.parsers").get_tool_parser(name, tokenizer)


def version() -> str:
    """The installed version; part of a renderer's fingerprint."""
    return str(import_module("renderers").__version__)
