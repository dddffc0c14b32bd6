"""What is read of sessions and their nodes, as frozen values, before anything is made of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from sessions_app.packing import Ids, Logprobs
from trainer_export.handed import Known


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session as it stands, or as it stood when an export froze it."""

    id: UUID
    profile: str
    policy: str
    message_matcher: str
    on_truncated: str
    healing: bool
    passthrough: bool
    next_seq: int
    """Nodes beyond this one are not part of the forest."""
    active_seq: int | None
    rollout_id: str | None
    group_id: str | None
    attempt_id: str | None
    labels: str
    """JSON text."""
    finish_said: bool
    """`finish` was called."""
    finish_metadata: str | None
    """JSON text."""
    finished_at: datetime | None
    deleted: bool
    healed_turns: int
    healed_prefix_tokens: int
    nonlinear: int
    close_unresolved: int


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node with its tokens and with what its record kept of the reply."""

    session_id: UUID
    seq: int
    parent_seq: int | None
    finish_reason: str
    raw_finish_reason: str | None
    weight_version: str | None
    weight_version_dispatch: str | None
    committed_at: datetime
    response_id: str | None
    request_key: bytes | None
    prefix_key: bytes | None
    message_count: int
    head_identity: bytes
    head_digest: bytes
    context_digest: bytes
    attach_kind: str
    cause: str | None
    retry_of: int | None
    root_class: str | None
    agent: str | None
    prompt_tokens: int
    """Ids fed."""
    total_tokens: int
    arrived_at: datetime
    cached_tokens: int
    response: str | None
    """The engine's reply as JSON text without arrays; None once it was purged."""
    trim: int
    prompt_delta: Ids
    completion: Ids
    logprobs: Logprobs


@dataclass(frozen=True, slots=True)
class RewardRow:
    """One reported reward."""

    session_id: UUID
    node_seq: int | None
    name: str
    value: float
    weight: float
    source: str


@dataclass(frozen=True, slots=True)
class SideRow:
    """One rider of a generation, without its payload."""

    session_id: UUID
    node_seq: int
    kind: str
    size: int
    """Bytes of the whole payload."""
    start_row: int | None


@dataclass(frozen=True, slots=True)
class MessageRow:
    """One message that a node added."""

    session_id: UUID
    node_seq: int
    generated: bool
    body: str
    """JSON text."""


@dataclass(frozen=True, slots=True)
class StoredSession:
    """Everything read of one session. Each list is in commit order."""

    session: SessionRow
    nodes: list[NodeRow] = field(default_factory=list)
    rewards: list[RewardRow] = field(default_factory=list)
    sides: list[SideRow] = field(default_factory=list)
    payloads: Mapping[tuple[int, str], tuple[bytes, ...]] = field(default_factory=dict)
    """Payloads of riders that were read (`forests.replay`), in parts, by node and kind."""
    messages: list[MessageRow] = field(default_factory=list)
    """Empty unless asked for."""
    tools: Mapping[bytes, str | None] = field(default_factory=dict)
    """JSON text of tools by head digest; empty unless asked for."""

    @property
    def known(self) -> Known:
        """What rows of it know of."""
        return Known(self.session.next_seq, len(self.rewards), self.session.finish_said)
