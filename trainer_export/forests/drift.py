"""Drift of paths against a fresh render, computed once per leaf and renderer: a path never changes."""

import logging
from collections import OrderedDict
from threading import Lock
from typing import Any
from uuid import UUID

from sessions_app.json_text import loads
from sessions_app.packing import Ids
from sessions_app.rendering.protocol import Renderer
from sessions_app.turns.describing import drift_of
from trainer_export.forests.rows import StoredSession

logger = logging.getLogger(__name__)

Drift = list[dict[str, Any]]
Key = tuple[str, UUID, int]
"""Fingerprint of the renderer, session, node."""
_KEPT_CHARACTERS = 8_000_000


class DriftCache:
    """Least recently used drift goes first. Shared between threads; bounded by the text it quotes."""

    def __init__(self, most: int = _KEPT_CHARACTERS) -> None:
        self._most = most
        self._held = 0
        self._found: OrderedDict[Key, Drift | None] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Key) -> tuple[Drift | None] | None:
        """The drift in a tuple of its own; None = not computed here yet."""
        with self._lock:
            if key not in self._found:
                return None
            self._found.move_to_end(key)
            return (self._found[key],)

    def put(self, key: Key, drift: Drift | None) -> None:
        """Keep what was computed."""
        with self._lock:
            if key in self._found:
                return
            self._found[key] = drift
            self._held += _size(drift)
            while self._held > self._most:
                self._held -= _size(self._found.popitem(last=False)[1])


def _size(drift: Drift | None) -> int:
    """Characters, an entry itself counted as some hundred of them."""
    texts = (value for mismatch in drift or () for value in mismatch.values() if isinstance(value, str))
    return 200 + sum(map(len, texts))


class PathDrift:
    """The drift of the paths of one session."""

    def __init__(self, stored: StoredSession, renderer: Renderer, cache: DriftCache) -> None:
        self._stored = stored
        self._renderer = renderer
        self._cache = cache
        self._nodes = {node.seq: node for node in stored.nodes}
        self._texts: dict[int, list[str]] = {}
        for message in stored.messages:
            self._texts.setdefault(message.node_seq, []).append(message.body)
        self._parsed: dict[int, list[Any]] = {}

    def of(self, path: list[int], tokens: Ids) -> Drift | None:
        """Mismatches of the path to its last node; None where they cannot be computed."""
        key = (self._renderer.fingerprint, self._stored.session.id, path[-1])
        held = self._cache.get(key)
        if held is None:
            held = (self._computed(path, tokens),)
            self._cache.put(key, held[0])
        return None if held[0] is None else [dict(one) for one in held[0]]

    def _computed(self, path: list[int], tokens: Ids) -> Drift | None:
        messages = [message for seq in path for message in self._messages(seq)]
        tools = self._stored.tools.get(self._nodes[path[-1]].head_digest)
        began = self._nodes[path[0]].arrived_at
        try:
            return drift_of(self._renderer, messages, _parse(tools) if tools else None, tokens, began)
        except Exception:
            logger.warning("drift could not be computed", exc_info=logger.isEnabledFor(logging.DEBUG))
            return None

    def _messages(self, seq: int) -> list[Any]:
        if seq not in self._parsed:
            self._parsed[seq] = [_parse(text) for text in self._texts.get(seq, ())]
        return self._parsed[seq]


def _parse(text: str) -> Any:
    return loads(text.encode("utf-8", "surrogatepass"))
