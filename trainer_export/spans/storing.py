"""Spans of one session into Postgres, each once, and back again.

Invariant: whoever stores spans of a session holds its `TracedSession` row, so sequence ids are given in one
order, and of two records of a span the first one stays.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sessions_app.store.pool import Transaction
from trainer_export.spans.prepared import PreparedSpan

_ENTER = """
    INSERT INTO trainer_export_tracedsession AS t (session_id, last_sequence, received_at)
    VALUES (%s, 0, clock_timestamp())
    ON CONFLICT (session_id) DO UPDATE SET last_sequence = t.last_sequence
    RETURNING last_sequence
"""
_KNOWN = """
    SELECT s.trace_id, s.span_id FROM trainer_export_span s
    JOIN unnest(%(traces)s::text[], %(spans)s::text[]) AS k (trace_id, span_id)
      ON k.trace_id = s.trace_id AND k.span_id = s.span_id
    WHERE s.session_id = %(session)s
"""
_COLUMNS = {
    "trace_id": "text",
    "span_id": "text",
    "parent_id": "text",
    "name": "text",
    "kind": "int",
    "status_code": "text",
    "status_description": "text",
    "start_ns": "bigint",
    "end_ns": "bigint",
    "attributes": "text",
    "events": "text",
    "links": "text",
    "trace_state": "text",
    "flags": "bigint",
    "dropped_attributes": "bigint",
    "dropped_events": "bigint",
    "dropped_links": "bigint",
    "is_call": "bool",
    "is_reward": "bool",
    "response_id": "text",
    "conversation_id": "text",
    "agent_name": "text",
    "received_at": "timestamptz",
}
_NAMES = ", ".join(_COLUMNS)
_ARRAYS = ", ".join(f"%({name})s::{kind}[]" for name, kind in _COLUMNS.items())
_INSERT = f"""
    INSERT INTO trainer_export_span (session_id, origin, sequence_id, sequence_given, {_NAMES})
    SELECT %(session)s, t.origin, t.sequence_id, t.sequence_given, {_NAMES}
    FROM unnest(%(origins)s::bytea[], %(sequences)s::bigint[], %(given)s::bool[], {_ARRAYS})
        WITH ORDINALITY AS t (origin, sequence_id, sequence_given, {_NAMES}, ordinal)
    ORDER BY t.ordinal
"""
_ORIGINS = """
    INSERT INTO trainer_export_spanorigin (session_id, digest, body)
    SELECT %s, t.digest, t.body FROM unnest(%s::bytea[], %s::text[]) AS t (digest, body)
    ON CONFLICT (session_id, digest) DO NOTHING
"""
_COUNT = """
    INSERT INTO trainer_export_trace AS t (
        session_id, trace_id, name, spans, calls, rewards, failed, start_ns, end_ns,
        first_received_at, last_received_at)
    SELECT %(session)s, n.trace_id, coalesce(n.name, ''), n.spans, n.calls, n.rewards, n.failed, n.start_ns,
        n.end_ns, n.first, n.last
    FROM unnest(%(traces)s::text[], %(names)s::text[], %(spans)s::int[], %(calls)s::int[],
                %(rewards)s::int[], %(failed)s::int[], %(starts)s::bigint[], %(ends)s::bigint[],
                %(firsts)s::timestamptz[], %(lasts)s::timestamptz[])
        AS n (trace_id, name, spans, calls, rewards, failed, start_ns, end_ns, first, last)
    ON CONFLICT (session_id, trace_id) DO UPDATE SET
        name = CASE WHEN t.name = '' THEN excluded.name ELSE t.name END,
        spans = t.spans + excluded.spans, calls = t.calls + excluded.calls,
        rewards = t.rewards + excluded.rewards, failed = t.failed + excluded.failed,
        start_ns = least(t.start_ns, excluded.start_ns), end_ns = greatest(t.end_ns, excluded.end_ns),
        first_received_at = least(t.first_received_at, excluded.first_received_at),
        last_received_at = greatest(t.last_received_at, excluded.last_received_at)
"""
_ADVANCE = """
    UPDATE trainer_export_tracedsession
    SET last_sequence = %s, received_at = clock_timestamp(), labelled_at = NULL WHERE session_id = %s
"""


async def store_spans(transaction: Transaction, session_id: UUID, spans: Sequence[PreparedSpan]) -> int:
    """Store the spans that are not stored yet; how many those were."""
    row = await transaction.fetch_one(_ENTER, (session_id,))
    new = await _unknown(transaction, session_id, spans)
    if not new:
        return 0
    numbered = with_sequences(new, row[0] if row else 0)
    await _insert(transaction, session_id, numbered)
    await transaction.execute(_COUNT, _counts(session_id, new))
    await transaction.execute(_ADVANCE, (numbered.last, session_id))
    return len(new)


@dataclass(frozen=True, slots=True)
class Numbered:
    """Spans with a sequence id each."""

    spans: Sequence[PreparedSpan]
    sequences: list[int]
    last: int
    """The highest one given in the session so far."""


def with_sequences(spans: Sequence[PreparedSpan], last: int) -> Numbered:
    """The sender's number where there is one, which also moves the counter on; else the next one."""
    sequences = []
    for span in spans:
        sequence = last + 1 if span.given_sequence is None else span.given_sequence
        last = max(last, sequence)
        sequences.append(sequence)
    return Numbered(spans, sequences, last)


async def _unknown(
    transaction: Transaction, session_id: UUID, spans: Sequence[PreparedSpan]
) -> list[PreparedSpan]:
    """Spans in the order they came, without those that are stored and without repetitions."""
    distinct: dict[tuple[str, str], PreparedSpan] = {}
    for span in spans:
        distinct.setdefault(span.key, span)
    keys = {"traces": [key[0] for key in distinct], "spans": [key[1] for key in distinct]}
    known = {tuple(row) for row in await transaction.fetch_all(_KNOWN, {"session": session_id, **keys})}
    return [span for key, span in distinct.items() if key not in known]


async def _insert(transaction: Transaction, session_id: UUID, numbered: Numbered) -> None:
    spans = numbered.spans
    origins = {span.origin.digest: span.origin.body for span in spans}
    await transaction.execute(_ORIGINS, (session_id, list(origins), list(origins.values())))
    parameters: dict[str, Any] = {name: [getattr(span, name) for span in spans] for name in _COLUMNS}
    parameters |= {
        "session": session_id,
        "origins": [span.origin.digest for span in spans],
        "sequences": numbered.sequences,
        "given": [span.given_sequence is not None for span in spans],
    }
    await transaction.execute(_INSERT, parameters)


def _counts(session_id: UUID, spans: Iterable[PreparedSpan]) -> dict[str, Any]:
    """What each trace has more of now."""
    traces: dict[str, list[PreparedSpan]] = {}
    for span in spans:
        traces.setdefault(span.trace_id, []).append(span)
    groups = list(traces.values())
    return {
        "session": session_id,
        "traces": list(traces),
        "names": [next((span.name for span in group if span.parent_id is None), "") for group in groups],
        "spans": [len(group) for group in groups],
        "calls": [sum(span.is_call for span in group) for group in groups],
        "rewards": [sum(span.is_reward for span in group) for group in groups],
        "failed": [sum(span.status_code == "ERROR" for span in group) for group in groups],
        "starts": [_least(span.start_ns for span in group) for group in groups],
        "ends": [_greatest(span.end_ns for span in group) for group in groups],
        "firsts": [min(span.received_at for span in group) for group in groups],
        "lasts": [max(span.received_at for span in group) for group in groups],
    }


def _least(times: Iterable[int | None]) -> int | None:
    return min((time for time in times if time is not None), default=None)


def _greatest(times: Iterable[int | None]) -> int | None:
    return max((time for time in times if time is not None), default=None)
