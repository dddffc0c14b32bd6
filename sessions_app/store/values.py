"""Rows of the forest as frozen values. What is immutable in the database may be cached; the rest may not."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sessions_app.packing import Ids, Logprobs


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """What a session was created with; never changes, so any process may cache it."""

    id: UUID
    profile: str
    history_policy: str
    on_nonlinear: str
    on_truncated: str
    retry_policy: str
    message_matcher: str
    healing: bool
    harness: str | None
    sampling: Mapping[str, Any]
    """Values forced on every request."""
    max_context_tokens: int | None
    max_turns: int | None
    rollout_id: str | None
    attempt_id: str | None
    group_id: str | None


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session to create."""

    settings: SessionSettings
    group_size: int | None
    labels: Mapping[str, str]
    idle_timeout_s: float | None
    key_hash: bytes | None


@dataclass(frozen=True, slots=True)
class SessionState:
    """What may change between two requests; read anew for each."""

    status: str
    version: int
    next_seq: int
    """Nodes committed so far."""
    active_seq: int | None
    passthrough: bool
    keyless: bool
    """Some node has no prefix key: attach by walking."""
    weight_version: str | None
    paused: bool
    worker: str | None
    """Engine that served the session's last turn."""


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A committed node without its messages and tokens. Immutable."""

    seq: int
    parent_seq: int | None
    root_seq: int
    depth: int
    message_start: int
    message_count: int
    prefix_key: bytes | None
    raw_digest: bytes
    head_digest: bytes
    head_identity: bytes
    context_digest: bytes
    finish_reason: str
    prompt_tokens: int
    total_tokens: int
    response_id: str | None
    model_name: str | None
    adapter_name: str | None


@dataclass(frozen=True, slots=True)
class AttachRow:
    """A node a request may continue, with what continuing it needs."""

    node: NodeRow
    reply_body: str
    """JSON text of the node's generated message."""
    has_children: bool


@dataclass(frozen=True, slots=True)
class PathMessage:
    """One stored message on a path."""

    node_seq: int
    position: int
    body: str
    """JSON text."""
    generated: bool
    sidecar: str | None = None


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to store with a node."""

    role: str
    body: str
    generated: bool
    sidecar: str | None = None


@dataclass(frozen=True, slots=True)
class NewEvent:
    """A HistoryEvent to store."""

    kind: str
    cause: str
    compared_seq: int | None = None
    message_index: int | None = None
    field: str | None = None
    stored_value: str | None = None
    replayed_value: str | None = None
    char_offset: int | None = None
    token_index: int | None = None
    matcher: str | None = None
    looser_matcher: str | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Head:
    """Tools and kwargs of a request as the engine would see them."""

    digest: bytes
    """Of the fields below as sent."""
    identity: bytes
    """Of what the engine sees at the head; key order in a schema does not count."""
    tools: str | None
    """JSON text as sent; None when the request named none."""
    template_kwargs: str
    template_fingerprint: str
    tokenizer_fingerprint: str


@dataclass(frozen=True, slots=True)
class Intent:
    """A request about to be generated, or refused."""

    session_id: UUID
    state: str
    protocol: str
    path: str
    stream: bool
    parent_seq: int | None
    attach_kind: str | None
    cause: str | None
    retry_of: int | None
    idempotency_key: str | None
    request_hash: bytes
    head: Head | None
    request_params: str | None
    message_count: int
    raw_base: int
    raw_reply: str | None
    raw_leading: str | None
    raw_tail: str | None
    weight_version_dispatch: str | None
    prompt_tokens: int | None
    reused_tokens: int | None
    added_tokens: int | None
    prepare_ms: float | None
    process: str
    arrived_at: datetime
    lease: int | None = None
    """Of the process that generates it; None: only age tells that nobody does."""
    error_code: str | None = None
    error_text: str | None = None
    status_code: int | None = None
    raw_path: int | None = None
    """Of a refused request: node whose path `raw_leading` and `raw_tail` are a delta against."""
    client_params: str | None = None
    """JSON text of what the client's body said and `request_params` does not."""


@dataclass(frozen=True, slots=True)
class Counters:
    """What one commit adds to the session's counters."""

    healed_turns: int = 0
    healed_prefix_tokens: int = 0
    nonlinear: int = 0
    close_unresolved: int = 0
    forks: int = 0
    rollbacks: int = 0
    retries: int = 0
    resets: int = 0


@dataclass(frozen=True, slots=True)
class SideData:
    """A rider of a generation, stored outside the hot row."""

    kind: str
    payload: bytes
    start_row: int | None
    layers: int | None
    prefix_bytes: int = 0
    """Bytes of the parent's payload that belong before `payload`."""
    digest: bytes | None = None
    """Of the whole, those bytes included; None = nothing is stored as a rest of it."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the engine answered, in the form it is stored."""

    completion: Ids
    logprobs: Logprobs
    logprob_texts: str | None
    response: str
    response_id: str | None
    finish_reason: str
    raw_finish_reason: str | None
    weight_version: str | None
    cached_tokens: int
    worker: str
    engine_ms: float
    ill_formed: bool
    side: tuple[SideData, ...] = ()


@dataclass(frozen=True, slots=True)
class NewNode:
    """Everything one commit writes."""

    session_id: UUID
    record_id: int
    expected_version: int
    parent: NodeRow | None
    attach_kind: str
    cause: str | None
    retry_of: int | None
    messages: tuple[NewMessage, ...]
    """What the node adds, its reply last."""
    prefix_key: bytes | None
    request_key: bytes | None
    raw_digest: bytes
    head: Head
    context_digest: bytes
    boundary_trim: int
    glue_tokens: int
    prompt_delta: Ids
    prompt_tokens: int
    weight_version_dispatch: str | None
    model_name: str | None
    adapter_name: str | None
    reply: Reply
    events: tuple[NewEvent, ...]
    counters: Counters
    passthrough: bool
    """The session gives up healing with this commit."""
    root_class: str | None = None
    root_evidence: str | None = None
    agent: str | None = None
    harness: str | None = None
    """As the request's headers show it; the session keeps the first one committed."""
    client_params: str | None = None
    """What the record keeps once the messages are stored; None = what it has."""


@dataclass(frozen=True, slots=True)
class TurnRow:
    """One committed turn as GET and samples read it."""

    node: NodeRow
    attach_kind: str
    cause: str | None
    retry_of: int | None
    raw_finish_reason: str | None
    ill_formed: bool
    weight_version: str | None
    committed_at: datetime
    record_id: int
    arrived_at: datetime
    path: str
    request_params: str | None
    raw_base: int
    raw_reply: str | None
    raw_leading: str | None
    tools: str | None
    response: str
    cached_tokens: int
    boundary_trim: int
    prompt_delta: Ids
    completion: Ids
    logprobs: Logprobs
    logprob_texts: str | None
