"""Template kwargs on their way to a family of the package, and DeepSeek's three names for one switch.

Invariant: a request that names the switch by any of its names replaces what was set by any other at launch.
"""

from collections.abc import Mapping
from typing import Any

from sessions_app.errors import InvalidTemplateKwargs

_SWITCH = ("thinking_mode", "enable_thinking", "thinking")
"""By precedence. Engines read the last to know whether to look for reasoning."""
_MODES = {"thinking": True, "chat": False}
_WITH_ALIASES = frozenset({"deepseek-v4"})


def overlaid(family: str, launch: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
    """Launch kwargs under a request's, the switch told by its last name."""
    kwargs = dict(launch)
    if family in _WITH_ALIASES and any(name in request for name in _SWITCH):
        kwargs = {name: value for name, value in launch.items() if name not in _SWITCH}
    return _told_once(family, {**kwargs, **request})


def for_package(family: str, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The same in the family's own words."""
    if family not in _WITH_ALIASES or "thinking" not in kwargs:
        return dict(kwargs)
    others = {name: value for name, value in kwargs.items() if name != "thinking"}
    return {**others, "enable_thinking": kwargs["thinking"]}


def _told_once(family: str, kwargs: dict[str, Any]) -> dict[str, Any]:
    named = [name for name in _SWITCH if name in kwargs] if family in _WITH_ALIASES else []
    if not named:
        return kwargs
    others = {name: value for name, value in kwargs.items() if name not in _SWITCH}
    return {**others, "thinking": _on(named[0], kwargs[named[0]])}


def _on(name: str, value: Any) -> bool:
    if name != "thinking_mode":
        return bool(value)
    if value not in _MODES:
        raise InvalidTemplateKwargs(
            f"chat template kwarg thinking_mode={value!r} is not 'thinking' or 'chat'"
        )
    return _MODES[value]
