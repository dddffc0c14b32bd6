"""Stored spans as the values that adapters work on. Reads only."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sessions_app.store.pool import Executor, Row
from trainer_export.traces.otlp.received import SpanEvent, SpanLink
from trainer_export.traces.span import Span

_NAMES = "coalesce(rollout_id, replace(id::text, '-', '')), coalesce(attempt_id, '')"
_ATTEMPT = f"SELECT {_NAMES} FROM sessions_app_session WHERE id = %s"
_SPANS = """
    SELECT trace_id, span_id, parent_id, name, status_code, status_description, start_ns, end_ns,
        sequence_id, sequence_given, attributes, events, links, origin, received_at,
        agent_before
    FROM trainer_export_span
    WHERE session_id = %(session)s AND (%(until)s::timestamptz IS NULL OR received_at <= %(until)s)
    ORDER BY id
"""
_ORIGINS = "SELECT digest, body FROM trainer_export_spanorigin WHERE session_id = %s"
_OUTLINE = """
    SELECT trace_id, span_id, parent_id, name, start_ns, end_ns, sequence_id, links, is_call, response_id,
        conversation_id, agent_name, agent
    FROM trainer_export_span WHERE session_id = %s ORDER BY id
"""
_NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class StoredSpan:
    """A span with how it arrived."""

    span: Span
    sequence_given: bool
    """By the sender."""
    received_at: datetime
    agent_before: str | None = None
    """What the node of the call had been labelled before a trace named its agent."""


@dataclass(frozen=True, slots=True)
class Outline:
    """A span without what it recorded, and the agent it was last found to belong to."""

    span: Span
    agent: str | None


async def load_spans(db: Executor, session_id: UUID, until: datetime | None = None) -> list[StoredSpan]:
    """All spans of a session in order of arrival; those that came later than a moment are left out."""
    attempt = await db.fetch_one(_ATTEMPT, (session_id,))
    if attempt is None:
        return []
    origins = {bytes(digest): body for digest, body in await db.fetch_all(_ORIGINS, (session_id,))}
    resources = {digest: json.loads(body)["resource"] for digest, body in origins.items()}
    rows = await db.fetch_all(_SPANS, {"session": session_id, "until": until})
    return [_stored(row, attempt, resources) for row in rows]


async def load_outlines(db: Executor, session_id: UUID) -> list[Outline]:
    """All spans of a session, with just enough to tell which agent a call belongs to."""
    return [_outline(row) for row in await db.fetch_all(_OUTLINE, (session_id,))]


def _stored(row: Row, attempt: Row, resources: dict[bytes, Any]) -> StoredSpan:
    (trace_id, span_id, parent_id, name, status, description, start, end, sequence, given, attributes,
     events, links, origin, received_at, agent_before) = row  # fmt: skip
    span = Span(
        span_id=span_id,
        parent_id=parent_id,
        name=name,
        attributes=json.loads(attributes),
        start_time=_seconds(start),
        end_time=_seconds(end),
        sequence_id=sequence,
        trace_id=trace_id,
        rollout_id=attempt[0],
        attempt_id=attempt[1],
        status_code=status,
        status_description=description or None,
        events=tuple(SpanEvent(**event).to_json() for event in _listed(events)),
        links=tuple(SpanLink(**link).to_json() for link in _listed(links)),
        resource=resources.get(bytes(origin), {}),
    )
    return StoredSpan(span, given, received_at, agent_before)


def _outline(row: Row) -> Outline:
    (trace_id, span_id, parent_id, name, start, end, sequence, links, is_call, response_id, conversation,
     agent_name, agent) = row  # fmt: skip
    told = {
        "gen_ai.operation.name": "chat" if is_call else None,
        "gen_ai.response.id": response_id,
        "gen_ai.conversation.id": conversation,
        "agent.name": agent_name,
    }
    span = Span(
        span_id=span_id,
        parent_id=parent_id,
        name=name if is_call else "",
        attributes={key: value for key, value in told.items() if value is not None},
        start_time=_seconds(start),
        end_time=_seconds(end),
        sequence_id=sequence,
        trace_id=trace_id,
        links=tuple(SpanLink(**link).to_json() for link in _listed(links)),
    )
    return Outline(span, agent)


def _listed(text: str) -> list[dict[str, Any]]:
    return json.loads(text) if text else []


def _seconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / _NANOSECONDS
