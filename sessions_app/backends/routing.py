"""Which of several engines serves a session. Pure bookkeeping of one process; nothing here is needed after a
restart.

Invariant: a session stays on its engine while that engine is healthy, wherever the turn is handled; a new
session goes to the least loaded healthy one, and idle processes agree on which that is (rendezvous hashing
breaks ties).
"""

import hashlib
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_REMEMBERED_SESSIONS = 50_000
_FAILURES_UNTIL_DOWN = 2


@dataclass(slots=True)
class Engine:
    """One base URL and what this process knows about it."""

    url: str
    in_flight: int = 0
    failed_checks: int = 0
    """Health checks failed in a row."""
    healthy: bool = True
    reads_alike: bool | None = None
    """The outcome of the tokenizer check; None = not asked yet, or it cannot be asked."""

    def report(self, healthy: bool) -> None:
        """The outcome of a health check: down after two failures in a row, up again after one success."""
        self.failed_checks = 0 if healthy else self.failed_checks + 1
        if healthy:
            self.healthy = True
        elif self.failed_checks >= _FAILURES_UNTIL_DOWN:
            self.healthy = False

    def refused(self) -> None:
        """No connection: down at once, until a health check succeeds."""
        self.failed_checks = _FAILURES_UNTIL_DOWN
        self.healthy = False


class EnginePool:
    """The engines of one profile."""

    def __init__(self, urls: tuple[str, ...]) -> None:
        if not urls:
            raise ValueError("an engine pool needs at least one URL")
        self.engines = tuple(Engine(url.rstrip("/")) for url in dict.fromkeys(urls))
        self._homes: OrderedDict[str, str] = OrderedDict()

    def choose(
        self, session_id: str, preferred: str = "", avoid: frozenset[str] = frozenset()
    ) -> Engine | None:
        """The engine for a session's next turn; None when every one is in `avoid`."""
        candidates = [engine for engine in self.engines if engine.url not in avoid]
        healthy = [engine for engine in candidates if engine.healthy] or candidates
        if not healthy:
            return None
        home = preferred or self._homes.get(session_id, "")
        engine = next((engine for engine in healthy if engine.url == home), None)
        engine = engine or min(healthy, key=lambda each: (each.in_flight, _weight(each.url, session_id)))
        self._remember(session_id, engine.url)
        return engine

    @contextmanager
    def occupied(self, engine: Engine) -> Iterator[None]:
        """Counts one request in flight."""
        engine.in_flight += 1
        try:
            yield
        finally:
            engine.in_flight -= 1

    def _remember(self, session_id: str, url: str) -> None:
        self._homes[session_id] = url
        self._homes.move_to_end(session_id)
        if len(self._homes) > _REMEMBERED_SESSIONS:
            self._homes.popitem(last=False)


def _weight(url: str, session_id: str) -> bytes:
    return hashlib.blake2b(f"{session_id} {url}".encode(), digest_size=8).digest()
