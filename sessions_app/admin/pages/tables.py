"""Records, events and rewards of a session or a node as lines. Reads only."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Left

from sessions_app.models import HistoryEvent, Record, Reward

SHOWN = 100
"""Lines of a table on a page; the list of its model has all of them."""
_TOLD = 160
"""Characters of an error in a table."""


@dataclass(frozen=True, slots=True)
class RecordLine:
    """One request."""

    id: int
    state: str
    node: int | None
    parent: int | None
    kind: str | None
    cause: str | None
    error_code: str | None
    reason: str | None
    status_code: int | None
    prompt_tokens: int | None
    reused_tokens: int | None
    added_tokens: int | None
    generated_tokens: int | None
    engine_ms: float | None
    arrived_at: datetime
    told: str | None
    """The beginning of what the client was told of an error."""


@dataclass(frozen=True, slots=True)
class EventLine:
    """One event."""

    id: int
    kind: str
    cause: str
    node: int | None
    record: int | None
    compared: int | None
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
class RewardLine:
    """One reported value."""

    id: int
    node: int | None
    name: str
    value: float
    weight: float
    source: str
    created_at: datetime


_RECORD = (
    "id", "state", "node_seq", "parent_seq", "attach_kind", "cause", "error_code", "reason", "status_code",
    "prompt_tokens", "reused_tokens", "added_tokens", "generated_tokens", "engine_ms", "arrived_at",
)  # fmt: skip
_EVENT = (
    "id", "kind", "cause", "node_seq", "record_id", "compared_seq", "message_index", "field", "stored_value",
    "replayed_value", "char_offset", "token_index", "matcher", "looser_matcher", "detail", "at",
)  # fmt: skip
_REWARD = ("id", "node_seq", "name", "value", "weight", "source", "created_at")


def record_lines(session_id: Any, **conditions: Any) -> list[RecordLine]:
    """The newest records under conditions."""
    rows = _newest(Record.objects.filter(session=session_id, **conditions))
    return [RecordLine(*row) for row in rows.values_list(*_RECORD, Left("error_text", _TOLD))[:SHOWN]]


def event_lines(session_id: Any, **conditions: Any) -> list[EventLine]:
    """The newest events under conditions."""
    rows = _newest(HistoryEvent.objects.filter(session=session_id, **conditions))
    return [EventLine(*row) for row in rows.values_list(*_EVENT)[:SHOWN]]


def reward_lines(session_id: Any, **conditions: Any) -> list[RewardLine]:
    """The newest rewards under conditions."""
    rows = _newest(Reward.objects.filter(session=session_id, **conditions))
    return [RewardLine(*row) for row in rows.values_list(*_REWARD)[:SHOWN]]


def _newest(rows: QuerySet) -> QuerySet:
    return rows.order_by("-id")
