"""What a protocol hands to a turn, and what it gets back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from sessions_app.backends.base import Generation
from sessions_app.history.causes import AttachKind, Cause
from sessions_app.store.commit import LateReason
from sessions_app.store.values import PathMessage
from sessions_app.turns.stopwatch import NO_STOPWATCH, Stopwatch


class Texts(Protocol):
    """JSON text of the request's messages."""

    def text(self, index: int) -> str:
        """The message at an index, exactly as the client sent it."""
        ...


class OwnSpelling(Protocol):
    """How a client spelled the messages of a request, where its protocol is not that of the messages."""

    values: list[Any]
    """One for each message: equal exactly where the client said the same, also beyond the message."""

    def beyond(self, index: int, stored: PathMessage | None) -> str | None:
        """JSON list of what the client sent for a replayed message; None where the stored one, if there is
        one, says it."""
        ...


@dataclass(frozen=True, slots=True)
class Arrival:
    """What is known of a request before its body is understood."""

    protocol: str
    """chat, messages or responses."""
    path: str
    """Path below the session, e.g. /v1/chat/completions."""
    body: bytes
    request_hash: bytes
    """SHA-256 of the body."""
    headers: Mapping[str, str]
    """Lower-case names; credentials of this server removed."""
    query: str
    arrived_at: datetime
    started: float
    """perf_counter at arrival."""
    idempotency_key: str | None = None
    reference: bool = False
    """Came by the reference's own chat path: an engine's answer other than 200 passes through at once."""
    stopwatch: Stopwatch = NO_STOPWATCH


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request in canonical form: OpenAI-shaped messages, whatever the protocol was."""

    arrival: Arrival
    body: Mapping[str, Any]
    """The client's JSON object in OpenAI chat form, without `stream` and `stream_options`."""
    messages: list[dict[str, Any]]
    texts: Texts
    tools: list[Any] | None
    """None where the request named none (an empty list counts as none)."""
    template_kwargs: Mapping[str, Any] | None
    stream: bool
    sidecars: Mapping[int, str] = field(default_factory=dict)
    """What the protocol said of a message beyond its canonical form, by index, as JSON text."""
    own_params: Mapping[str, Any] | None = None
    """What the client's body said beside messages and tools, in its own words; None = as in `body`."""
    own: OwnSpelling | None = None
    """None where the messages are the client's own."""
    odd_numbers: bool = False
    """A NaN or an infinity may stand in the body."""

    @property
    def spelled(self) -> list[Any]:
        """What tells one spelling of the messages from another."""
        return self.messages if self.own is None else self.own.values


@dataclass(frozen=True, slots=True)
class TurnResult:
    """A generated reply and where it was stored."""

    session_id: UUID
    generation: Generation
    message: Mapping[str, Any]
    """The assistant message, as the engine parsed it or as the renderer did."""
    reply: Mapping[str, Any]
    """The whole reply in OpenAI chat form; with a chat engine its own, replay payloads removed."""
    ill_formed: bool
    node_seq: int | None
    """None: generated, but attached nowhere."""
    parent_seq: int | None
    kind: AttachKind
    cause: Cause | None
    reused_tokens: int
    late: LateReason | None = None
    replayed: bool = False
