"""Renderers under other kwargs, made once and shared."""

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

_MOST = 64
_Made = TypeVar("_Made")


class Clones(Generic[_Made]):
    """A small thread-safe memory, oldest entry out first. `true` and `1` are different kwargs: the key is
    JSON text."""

    def __init__(self) -> None:
        self._made: dict[str, _Made] = {}
        self._lock = threading.Lock()

    def get(self, kwargs: Mapping[str, Any], make: Callable[[Mapping[str, Any]], _Made]) -> _Made:
        """The one for these kwargs. Made outside the lock: two threads may make it, one of them is kept."""
        key = json.dumps(kwargs, sort_keys=True, default=repr)
        with self._lock:
            known = self._made.get(key)
        if known is not None:
            return known
        made = make(kwargs)
        with self._lock:
            if len(self._made) >= _MOST:
                self._made.pop(next(iter(self._made)))
            return self._made.setdefault(key, made)
