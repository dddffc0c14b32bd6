"""What a protocol is to a view: bodies in, bodies and events out.

Not here: sessions, keys, the turn. Invariant: reading changes nothing; the canonical messages say what the
client said, and what they cannot say goes along as sidecars.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sessions_app.errors import TitoError
from sessions_app.store.values import SessionSettings
from sessions_app.turns.values import Arrival, ChatRequest, TurnResult


@dataclass(frozen=True, slots=True)
class Incoming:
    """A request body on its way to a ChatRequest."""

    arrival: Arrival
    value: Any
    """The parsed body."""
    settings: SessionSettings
    previous: Sequence[str] = ()
    """JSON texts of the stored messages that the body only refers to."""
    odd_numbers: bool = False
    """A NaN or an infinity may stand in the body."""

    @property
    def wants_stream(self) -> bool:
        """Asked for by the body, or by an Accept header where the body says nothing."""
        asked = self.value.get("stream")
        return (
            bool(asked)
            if asked is not None
            else "text/event-stream" in self.arrival.headers.get("accept", "")
        )


class WireProtocol(Protocol):
    """One protocol that agents speak. Stateless."""

    name: str
    """chat, messages or responses."""
    path: str
    """Below the session, e.g. /v1/chat/completions."""
    keep_alive: bytes
    """What is sent while a stream waits for its reply."""

    def read(self, incoming: Incoming) -> ChatRequest:
        """The request of a body. Raises the BadRequest of the first thing that is wrong."""
        ...

    def reply(self, result: TurnResult, request: ChatRequest) -> bytes:
        """The body of a reply in one piece."""
        ...

    def events(self, result: TurnResult, request: ChatRequest) -> Iterator[bytes]:
        """The events of a streamed reply."""
        ...

    def error_body(self, error: TitoError) -> dict[str, Any]:
        """An error as the protocol's clients read it."""
        ...

    def error_events(self, error: TitoError) -> Iterator[bytes]:
        """An error after a stream has begun."""
        ...

    def session_name(self, value: Any) -> str:
        """The name a body gives to its session, where no credential does (reference gateway 1.2)."""
        ...
