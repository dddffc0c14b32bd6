"""Pages of sessions, nodes, records and events, for people and scripts that look at them. Reads only.

Every page is one indexed statement; nothing counts a whole table.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from sessions_app.store.pool import Executor

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session with its settings, its lifecycle and its counters."""

    id: UUID
    profile: str
    history_policy: str
    on_nonlinear: str
    on_truncated: str
    retry_policy: str
    message_matcher: str
    healing: bool
    harness: str | None
    rollout_id: str | None
    attempt_id: str | None
    group_id: str | None
    group_size: int | None
    labels: str
    """JSON object."""
    sampling: str
    """JSON object."""
    max_context_tokens: int | None
    max_turns: int | None
    idle_timeout_s: float | None
    status: str
    finish_status: str | None
    created_at: datetime
    last_activity_at: datetime
    finished_at: datetime | None
    deleted_at: datetime | None
    next_seq: int
    active_seq: int | None
    passthrough: bool
    healed_turns: int
    healed_prefix_tokens: int
    nonlinear: int
    close_unresolved: int
    forks: int
    rollbacks: int
    retries: int
    resets: int
    prompt_tokens: int
    added_tokens: int
    generated_tokens: int


@dataclass(frozen=True, slots=True)
class NodeSummary:
    """A node without messages and tokens."""

    seq: int
    parent_seq: int | None
    root_seq: int
    depth: int
    message_start: int
    message_count: int
    attach_kind: str
    cause: str | None
    retry_of: int | None
    root_class: str | None
    agent: str | None
    response_id: str | None
    finish_reason: str
    raw_finish_reason: str | None
    ill_formed: bool
    prompt_tokens: int
    total_tokens: int
    model_name: str | None
    weight_version_dispatch: str | None
    weight_version: str | None
    record_id: int
    committed_at: datetime


@dataclass(frozen=True, slots=True)
class RecordSummary:
    """A request and what became of it."""

    id: int
    state: str
    protocol: str
    path: str
    stream: bool
    parent_seq: int | None
    node_seq: int | None
    attach_kind: str | None
    cause: str | None
    retry_of: int | None
    idempotency_key: str | None
    message_count: int
    status_code: int | None
    error_code: str | None
    error_text: str | None
    reason: str | None
    prompt_tokens: int | None
    reused_tokens: int | None
    added_tokens: int | None
    generated_tokens: int | None
    cached_tokens: int | None
    prepare_ms: float | None
    engine_ms: float | None
    weight_version_dispatch: str | None
    weight_version: str | None
    worker: str | None
    process: str
    arrived_at: datetime
    finished_at: datetime | None
    confirmed_at: datetime | None


@dataclass(frozen=True, slots=True)
class EventRow:
    """Why a turn was no plain append."""

    id: int
    record_id: int | None
    node_seq: int | None
    kind: str
    cause: str
    compared_seq: int | None
    message_index: int | None
    field: str | None
    stored_value: str | None
    replayed_value: str | None
    char_offset: int | None
    token_index: int | None
    matcher: str | None
    looser_matcher: str | None
    detail: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """What a list of sessions is narrowed to; None = any."""

    before: datetime | None = None
    """Created before this: the cursor of the next page."""
    id_prefix: str | None = None
    """Leading hex digits of the id."""
    status: str | None = None
    harness: str | None = None
    rollout_id: str | None = None
    group_id: str | None = None
    profile: str | None = None
    history_policy: str | None = None


def _columns(row: type[Any], alias: str, special: Mapping[str, str] | None = None) -> str:
    """The select list of a row's fields."""
    return ", ".join((special or {}).get(field.name, f"{alias}.{field.name}") for field in fields(row))


_SESSION_COLUMNS = _columns(SessionRow, "s", {"profile": "p.name"})
_SESSION_FROM = "FROM sessions_app_session s JOIN sessions_app_modelprofile p ON p.id = s.profile_id"
_COLUMN_OF = {
    "status": "s.status",
    "harness": "s.harness",
    "rollout_id": "s.rollout_id",
    "group_id": "s.group_id",
    "profile": "p.name",
    "history_policy": "s.history_policy",
}
_HEX = re.compile(r"[0-9a-f]{1,32}\Z")


async def list_sessions(db: Executor, wanted: SessionFilter, limit: int) -> list[SessionRow]:
    """Sessions, newest first; deleted ones are listed too, with the time they were deleted."""
    conditions: list[str] = ["true"]
    parameters: dict[str, Any] = {"limit": limit}
    for name, column in _COLUMN_OF.items():
        value = getattr(wanted, name)
        if value is not None:
            conditions.append(f"{column} = %({name})s")
            parameters[name] = value
    if wanted.before is not None:
        conditions.append("s.created_at < %(before)s")
        parameters["before"] = wanted.before
    if wanted.id_prefix is not None and _HEX.match(wanted.id_prefix):
        conditions.append("s.id BETWEEN %(low)s AND %(high)s")
        parameters["low"] = UUID(wanted.id_prefix.ljust(32, "0"))
        parameters["high"] = UUID(wanted.id_prefix.ljust(32, "f"))
    rows = await db.fetch_all(
        f"SELECT {_SESSION_COLUMNS} {_SESSION_FROM} WHERE {' AND '.join(conditions)} "
        "ORDER BY s.created_at DESC LIMIT %(limit)s",
        parameters,
    )
    return [SessionRow(*row) for row in rows]


async def load_session(db: Executor, session_id: UUID) -> SessionRow | None:
    """One session, deleted or not."""
    row = await db.fetch_one(f"SELECT {_SESSION_COLUMNS} {_SESSION_FROM} WHERE s.id = %s", (session_id,))
    return SessionRow(*row) if row else None


async def count_events(db: Executor, session_id: UUID) -> dict[str, dict[str, int]]:
    """Events of a session by kind and cause."""
    rows = await db.fetch_all(
        "SELECT kind, cause, count(*) FROM sessions_app_historyevent WHERE session_id = %s "
        "GROUP BY kind, cause ORDER BY kind, cause",
        (session_id,),
    )
    counted: dict[str, dict[str, int]] = {}
    for kind, cause, count in rows:
        counted.setdefault(kind, {})[cause] = count
    return counted


async def list_nodes(db: Executor, session_id: UUID, after: int, limit: int) -> list[NodeSummary]:
    """Nodes in commit order, beginning behind a seq (-1 for all)."""
    rows = await db.fetch_all(
        f"SELECT {_columns(NodeSummary, 'n')} FROM sessions_app_node n "
        "WHERE n.session_id = %s AND n.seq > %s ORDER BY n.seq LIMIT %s",
        (session_id, after, limit),
    )
    return [NodeSummary(*row) for row in rows]


async def list_records(db: Executor, session_id: UUID, after: int, limit: int) -> list[RecordSummary]:
    """Records in order of arrival, beginning behind an id."""
    rows = await db.fetch_all(
        f"SELECT {_columns(RecordSummary, 'r')} FROM sessions_app_record r "
        "WHERE r.session_id = %s AND r.id > %s ORDER BY r.id LIMIT %s",
        (session_id, after, limit),
    )
    return [RecordSummary(*row) for row in rows]


async def list_events(db: Executor, session_id: UUID, after: int, limit: int) -> list[EventRow]:
    """Events in the order they happened, beginning behind an id."""
    rows = await db.fetch_all(
        f"SELECT {_columns(EventRow, 'e')} FROM sessions_app_historyevent e "
        "WHERE e.session_id = %s AND e.id > %s ORDER BY e.id LIMIT %s",
        (session_id, after, limit),
    )
    return [EventRow(*row) for row in rows]
