"""Token arrays of nodes, kept by a process within a byte budget.

A checkpoint never changes, so nothing here ever needs to be invalidated; what is missing is read from
Postgres.
"""

from collections import OrderedDict
from uuid import UUID

from sessions_app.packing import Ids

_Key = tuple[UUID, int]


class CheckpointCache:
    """Least recently used arrays go first. Used from one event loop."""

    def __init__(self, budget_bytes: int) -> None:
        self._budget = budget_bytes
        self._used = 0
        self._arrays: OrderedDict[_Key, Ids] = OrderedDict()

    def get(self, session_id: UUID, seq: int) -> Ids | None:
        """Every id up to and including a node, or None."""
        tokens = self._arrays.get((session_id, seq))
        if tokens is not None:
            self._arrays.move_to_end((session_id, seq))
        return tokens

    def put(self, session_id: UUID, seq: int, tokens: Ids) -> None:
        """Keep a node's read-only array, as far as the budget allows."""
        self.drop(session_id, seq)
        if tokens.nbytes > self._budget:
            return
        self._arrays[(session_id, seq)] = tokens
        self._used += tokens.nbytes
        while self._used > self._budget:
            self._used -= self._arrays.popitem(last=False)[1].nbytes

    def drop(self, session_id: UUID, seq: int) -> None:
        """Forget a node that is unlikely to be continued again, such as one that just was."""
        tokens = self._arrays.pop((session_id, seq), None)
        if tokens is not None:
            self._used -= tokens.nbytes

    @property
    def used_bytes(self) -> int:
        """Bytes held now."""
        return self._used
