"""How many turns one process takes on at a time, in all and for one session.

Nothing queues: what has no place is told so at once, before any work, and comes again. Invariant: a session
never holds more than its share, so one that asks without end leaves room for the others.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from sessions_app.errors import Overloaded


class Admission:
    """Counts turns in progress; used from one event loop."""

    def __init__(self, *, most: int, most_a_session: int) -> None:
        self._most = most
        self._most_a_session = most_a_session
        self._by_session: dict[UUID, int] = {}
        self.in_flight = 0
        """Turns in progress, those that wait for an earlier one included."""

    def check_room(self) -> None:
        """Raises Overloaded where the process has no place for anybody."""
        if self.in_flight >= self._most:
            raise Overloaded(f"{self.in_flight} generations are in flight in this process")

    @contextmanager
    def place(self, session_id: UUID) -> Iterator[None]:
        """Hold a place for one turn. Raises Overloaded where there is none."""
        self.check_room()
        held = self._by_session.get(session_id, 0)
        if held >= self._most_a_session:
            raise Overloaded(f"{held} generations of this session are in flight in this process")
        self._by_session[session_id] = held + 1
        self.in_flight += 1
        try:
            yield
        finally:
            self.in_flight -= 1
            self._give_back(session_id)

    def _give_back(self, session_id: UUID) -> None:
        left = self._by_session[session_id] - 1
        if left:
            self._by_session[session_id] = left
        else:
            del self._by_session[session_id]
