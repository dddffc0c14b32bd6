"""What the installed package `renderers` offers, imported only when it is asked for."""

from copy import copy
from functools import cache
from importlib import import_module
from typing import Any

_DATE, _DAY = "conversation_start_date", "_conversation_start_date_resolved"
"""The kwarg of families that print the day, and where one keeps the day on which it was made."""
_ANALYSIS = "auto_drop_analysis"
"""A switch of gpt-oss that drops earlier reasoning, whatever is to be kept otherwise."""
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
    kept = {_ANALYSIS: False} if _ANALYSIS in type(config).model_fields else {}
    retaining = type(config)(thinking_retention="all", **kept)
    return _base().create_renderer(tokenizer, retaining, chat_template_kwargs=kwargs or None)


def of_day(renderer: Any, day: str) -> Any:
    """The same renderer on a day (year-month-day); itself where it prints none, or was told one."""
    if not hasattr(renderer, _DAY) or getattr(renderer.config, _DATE):
        return renderer
    other = copy(renderer)
    setattr(other, _DAY, day)
    return other


def tool_parser(name: str, tokenizer: Any) -> Any:
    """A tool parser of the package's registry."""
    return import_module("renderers.parsers").get_tool_parser(name, tokenizer)


def version() -> str:
    """The installed version; part of a renderer's fingerprint."""
    return str(import_module("renderers").__version__)
