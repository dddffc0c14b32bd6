"""Spans that name no rollout: kept until their trace has arrived, then handed to the session it shows.

Placed when the trace is quiet, or when somebody reads the session: so the order of arrival decides nothing.
Invariant: whoever places spans of a trace holds the trace's lock.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sessions_app.store.pool import Database, Row, Transaction
from trainer_export.spans.homes import Place, homes
from trainer_export.spans.prepared import Origin, PreparedSpan
from trainer_export.spans.storing import store_spans

QUIET = timedelta(seconds=60)
"""A trace that brought nothing for so long is taken to be complete; SDKs send every five seconds."""
KEPT = timedelta(days=1)
"""After that a span without a session is dropped."""
_AT_ONCE = 1000

_COLUMNS = ("trace_id", "span_id", "parent_id", "name", "received_at")
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s::text, 7477))"
_HOLD = """
    INSERT INTO trainer_export_waitingspan (trace_id, span_id, parent_id, name, body, received_at)
    SELECT t.trace_id, t.span_id, t.parent_id, t.name, t.body, t.at
    FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::timestamptz[], %s::text[])
        WITH ORDINALITY AS t (trace_id, span_id, parent_id, name, at, body, ordinal)
    ORDER BY t.ordinal
    ON CONFLICT (trace_id, span_id) DO NOTHING
"""
_EXPIRE = """
    DELETE FROM trainer_export_waitingspan WHERE id IN (
        SELECT id FROM trainer_export_waitingspan WHERE received_at < now() - %s::interval
        ORDER BY received_at LIMIT %s FOR UPDATE SKIP LOCKED)
"""
_WAITING = "SELECT span_id, parent_id, body FROM trainer_export_waitingspan WHERE trace_id = %s ORDER BY id"
_STORED = """
    SELECT s.span_id, s.parent_id, s.session_id
    FROM trainer_export_trace t
    JOIN trainer_export_span s ON s.session_id = t.session_id AND s.trace_id = t.trace_id
    WHERE t.trace_id = %s
"""
_RELEASE = "DELETE FROM trainer_export_waitingspan WHERE trace_id = %s AND span_id = ANY(%s)"
_OF_SESSION = """
    SELECT t.trace_id FROM trainer_export_trace t
    WHERE t.session_id = %s
      AND EXISTS (SELECT 1 FROM trainer_export_waitingspan w WHERE w.trace_id = t.trace_id)
"""
_QUIET = """
    SELECT w.trace_id FROM trainer_export_waitingspan w
    JOIN trainer_export_trace t ON t.trace_id = w.trace_id
    GROUP BY w.trace_id
    HAVING greatest(max(w.received_at), max(t.last_received_at)) < now() - %(quiet)s::interval
    ORDER BY max(w.received_at) LIMIT %(most)s
"""


async def hold(db: Database, spans: Sequence[PreparedSpan]) -> None:
    """Keep spans until their trace shows where they belong; drops what waited in vain."""
    if not spans:
        return
    values = [[getattr(span, name) for span in spans] for name in _COLUMNS]
    async with db.transaction() as transaction:
        await transaction.execute(_EXPIRE, (KEPT, _AT_ONCE))
        await transaction.execute(_HOLD, (*values, [_text(span) for span in spans]))


async def settle_session(db: Database, session_id: UUID) -> None:
    """Place what waits in the traces of a session: somebody is about to read it."""
    for (trace_id,) in await db.fetch_all(_OF_SESSION, (session_id,)):
        await _place(db, trace_id)


async def settle_quiet(db: Database) -> int:
    """Place what waits in traces that are quiet; how many those are."""
    traces = await db.fetch_all(_QUIET, {"quiet": QUIET, "most": _AT_ONCE})
    for (trace_id,) in traces:
        await _place(db, trace_id)
    return len(traces)


async def assign(transaction: Transaction, trace_id: str, session_id: UUID) -> int:
    """Hand all that waits of a trace to a session; how many spans waited."""
    await transaction.execute(_LOCK, (trace_id,))
    waiting = await transaction.fetch_all(_WAITING, (trace_id,))
    stored = await transaction.fetch_all(_STORED, (trace_id,))
    wanted = {span_id: session_id for span_id, _, _ in waiting}
    await _release(transaction, trace_id, waiting, wanted | {row[0]: row[2] for row in stored})
    return len(waiting)


async def _place(db: Database, trace_id: str) -> None:
    async with db.transaction() as transaction:
        await transaction.execute(_LOCK, (trace_id,))
        waiting = await transaction.fetch_all(_WAITING, (trace_id,))
        stored = await transaction.fetch_all(_STORED, (trace_id,))
        await _release(transaction, trace_id, waiting, _sessions(waiting, stored))


async def _release(
    transaction: Transaction, trace_id: str, waiting: Sequence[Row], found: dict[str, UUID]
) -> None:
    groups: dict[UUID, list[PreparedSpan]] = {}
    for span_id, _, body in waiting:
        if span_id in found:
            groups.setdefault(found[span_id], []).append(_span(body))
    for session in sorted(groups):
        await store_spans(transaction, session, groups[session])
    placed = [span.span_id for spans in groups.values() for span in spans]
    await transaction.execute(_RELEASE, (trace_id, placed))


def _sessions(waiting: Sequence[Row], stored: Sequence[Row]) -> dict[str, UUID]:
    """Session by span id; a span that is stored already stays where it is."""
    places: list[Place[UUID]] = [Place(*row) for row in stored]
    places += [Place(span_id, parent_id, None) for span_id, parent_id, _ in waiting]
    return {span_id: session for span_id, _, session in stored} | homes(places)


def _text(span: PreparedSpan) -> str:
    origin = {"digest": span.origin.digest.hex(), "body": span.origin.body}
    values = asdict(span) | {"origin": origin, "received_at": span.received_at.isoformat()}
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def _span(text: str) -> PreparedSpan:
    values: dict[str, Any] = json.loads(text)
    origin = values["origin"]
    values["origin"] = Origin(bytes.fromhex(origin["digest"]), origin["body"])
    values["received_at"] = datetime.fromisoformat(values["received_at"])
    return PreparedSpan(**values)
