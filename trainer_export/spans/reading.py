"""Everything that the triplets of sessions depend on, from the database. Reads only.

Made for workers and for screens: between its statements it computes, so no server calls it on its loop.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from sessions_app.store.pool import Executor
from trainer_export.forests.load import Wanted, load_sessions
from trainer_export.forests.rows import StoredSession
from trainer_export.spans.converting import TracedSession
from trainer_export.spans.late_replies import late_replies
from trainer_export.spans.loading import StoredSpan, load_spans
from trainer_export.spans.own_calls import OwnCall, own_calls
from trainer_export.spans.responses import ServedNode, nodes_of_responses
from trainer_export.traces.dialects.response_ids import response_id


async def load_traced(db: Executor, stored: StoredSession, until: datetime | None = None) -> TracedSession:
    """A session with its spans; those that arrived after a moment are left out. `stored`: with messages."""
    session = stored.session
    received = await load_spans(db, session.id, until)
    told = _told(received)
    nodes = _chosen(await nodes_of_responses(db, told), session.id)
    own = own_calls(stored)
    calls = {ServedNode(session.id, call.seq): call for call in own}
    calls |= await _foreign(db, {node for node in nodes.values() if node.session_id != session.id})
    late = await late_replies(db, session.id, own, told - nodes.keys(), until)
    return TracedSession(
        session_id=session.id.hex,
        rollout_id=session.rollout_id or session.id.hex,
        attempt_id=session.attempt_id or "",
        received=received,
        own=own,
        served=late | {name: calls[node] for name, node in nodes.items() if node in calls},
        rewards=stored.rewards,
    )


def _told(received: Sequence[StoredSpan]) -> set[str]:
    return {told for one in received if (told := response_id(one.span.attributes))}


def _chosen(found: Mapping[str, list[ServedNode]], session_id: UUID) -> dict[str, ServedNode]:
    """The session's own node, else the only one there is."""
    chosen = {}
    for told, nodes in found.items():
        own = [node for node in nodes if node.session_id == session_id]
        if own or len(nodes) == 1:
            chosen[told] = (own or nodes)[-1]
    return chosen


async def _foreign(db: Executor, nodes: set[ServedNode]) -> dict[ServedNode, OwnCall]:
    """Calls that other sessions served."""
    if not nodes:
        return {}
    sessions = await load_sessions(db, sorted({node.session_id for node in nodes}), Wanted())
    calls = {
        ServedNode(stored.session.id, call.seq): call for stored in sessions for call in own_calls(stored)
    }
    return {node: calls[node] for node in nodes if node in calls}
