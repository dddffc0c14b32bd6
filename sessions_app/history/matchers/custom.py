"""A matcher of the operator's own, named by a dotted path in the settings.

Invariant: it decides only by a bool; whatever else it does is an error of the contract. It has no keys, so
its sessions are matched by walking the candidate paths.
"""

import importlib
import inspect
from collections.abc import Callable
from typing import Any

from sessions_app.history.matchers.base import Message
from sessions_app.history.matchers.guard import Predicate, verdict


class CustomMatcher:
    """A predicate behind the contract."""

    def __init__(self, path: str, predicate: Predicate) -> None:
        self.name = path
        self._predicate = predicate

    def matches(self, stored: Message, replayed: Message) -> bool:
        return verdict(self._predicate, stored, replayed)

    def key(self, message: Message) -> bytes | None:
        return None


def load_function(path: str) -> Callable[..., Any]:
    """The synchronous callable at `package.module.name`. Raises TypeError if it is something else."""
    module_path, _, name = path.rpartition(".")
    loaded = getattr(importlib.import_module(module_path), name)
    if not callable(loaded):
        raise TypeError(f"load_function({path!r}) did not resolve to a callable")
    if inspect.iscoroutinefunction(loaded) or inspect.iscoroutinefunction(type(loaded).__call__):
        reason = "resolved to an async function; a synchronous one is required"
        raise TypeError(f"load_function({path!r}) {reason}")
    return loaded
