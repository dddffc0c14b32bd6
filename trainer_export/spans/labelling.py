"""Agent names of traces handed to the nodes of the calls.

Found again from all spans whenever some arrive, because the agent of a call usually arrives after the call.
What a header or the system prompt had said gives way, and is kept beside the call. A node of another session
is labelled only where both belong to one rollout.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from sessions_app.store.labels import AgentLabel, label_nodes
from sessions_app.store.pool import Database, Executor, Transaction
from trainer_export.spans.loading import Outline, load_outlines
from trainer_export.spans.responses import ServedNode, nodes_of_responses
from trainer_export.spans.waiting import settle_quiet
from trainer_export.traces.better.agents_of_calls import AgentOfCall, agents_of_calls
from trainer_export.traces.better.distinct import original_id, told_apart

_DUE = """
    SELECT session_id FROM trainer_export_tracedsession
    WHERE labelled_at IS NULL AND received_at < now() - %s * interval '1 second'
    ORDER BY received_at LIMIT 200
"""
_ARRIVED = "SELECT received_at, labelled_at FROM trainer_export_tracedsession WHERE session_id = %s"
_DONE = """
    UPDATE trainer_export_tracedsession SET labelled_at = clock_timestamp()
    WHERE session_id = %s AND received_at = %s
"""
_SPANS = """
    UPDATE trainer_export_span s SET agent = k.agent
    FROM unnest(%s::text[], %s::text[], %s::text[]) AS k (trace_id, span_id, agent)
    WHERE s.session_id = %s AND s.trace_id = k.trace_id AND s.span_id = k.span_id
"""
_BEFORE = """
    UPDATE trainer_export_span s SET agent_before = k.agent
    FROM unnest(%s::text[], %s::text[], %s::text[]) AS k (trace_id, span_id, agent)
    WHERE s.session_id = %s AND s.trace_id = k.trace_id AND s.span_id = k.span_id
      AND s.agent_before IS NULL
"""
_SAME_ROLLOUT = """
    SELECT s.id FROM sessions_app_session s JOIN sessions_app_session own ON own.rollout_id = s.rollout_id
    WHERE own.id = %s AND s.id = ANY(%s)
"""
_ARRIVING_S = 5.0
"""SDKs send every five seconds; sooner there would soon be more to do."""


async def label_due(db: Database) -> int:
    """Place spans of quiet traces, label the sessions that got spans; how many those were."""
    await settle_quiet(db)
    due = [row[0] for row in await db.fetch_all(_DUE, (_ARRIVING_S,))]
    for session_id in due:
        await label_session(db, session_id)
    return len(due)


async def label_session(db: Database, session_id: UUID) -> None:
    """Label the calls of a session and the nodes behind them, unless nothing arrived since the last time."""
    arrived = await db.fetch_one(_ARRIVED, (session_id,))
    if arrived is None or arrived[1] is not None:
        return
    outlines = _told_apart(await load_outlines(db, session_id))
    found = await asyncio.to_thread(agents_of_calls, [outline.span for outline in outlines])
    nodes = await nodes_of_responses(db, [call.response_id for call in found if call.response_id])
    own = await _own_sessions(db, session_id, {node.session_id for each in nodes.values() for node in each})
    calls = _calls_of_nodes(found, nodes, own)
    changed = _changed(found, outlines)
    async with db.transaction() as transaction:
        labels = [AgentLabel(node.session_id, node.seq, call.agent) for node, call in calls.items()]
        replaced = await label_nodes(transaction, labels)
        await _keep_earlier(transaction, session_id, replaced, calls, outlines)
        if changed:
            await transaction.execute(_SPANS, (*map(list, zip(*changed, strict=True)), session_id))
        await transaction.execute(_DONE, (session_id, arrived[0]))


def _told_apart(outlines: Sequence[Outline]) -> list[Outline]:
    spans = told_apart([one.span for one in outlines])
    return [replace(one, span=span) for one, span in zip(outlines, spans, strict=True)]


async def _own_sessions(db: Executor, session_id: UUID, others: set[UUID]) -> set[UUID]:
    """The session itself and those of its rollout."""
    if not others - {session_id}:
        return {session_id}
    rows = await db.fetch_all(_SAME_ROLLOUT, (session_id, sorted(others)))
    return {session_id, *(row[0] for row in rows)}


def _changed(found: Sequence[AgentOfCall], outlines: Sequence[Outline]) -> list[tuple[str, str, str]]:
    """Trace, span and agent of the spans that have another agent now."""
    agents = {span_id: call.agent for call in found for span_id in call.span_ids}
    return [
        (one.span.trace_id, original_id(one.span.span_id), agents[one.span.span_id])
        for one in outlines
        if agents.get(one.span.span_id) not in (None, one.agent)
    ]


def _calls_of_nodes(
    found: Sequence[AgentOfCall], nodes: Mapping[str, list[ServedNode]], own: set[UUID]
) -> dict[ServedNode, AgentOfCall]:
    return {
        node: call
        for call in found
        for node in nodes.get(call.response_id or "", ())
        if node.session_id in own
    }


async def _keep_earlier(
    transaction: Transaction,
    session_id: UUID,
    replaced: Sequence[AgentLabel],
    calls: Mapping[ServedNode, AgentOfCall],
    outlines: Sequence[Outline],
) -> None:
    """Note on the spans of a call what its node had been called by others than traces."""
    by_id = {one.span.span_id: one for one in outlines}
    rows = []
    for earlier in replaced:
        call = calls[ServedNode(earlier.session_id, earlier.seq)]
        records = [by_id[span_id] for span_id in call.span_ids]
        if all(one.agent != earlier.agent for one in records):
            rows += [(one.span.trace_id, original_id(one.span.span_id), earlier.agent) for one in records]
    if rows:
        await transaction.execute(_BEFORE, (*map(list, zip(*rows, strict=True)), session_id))
