"""Agent names that became known after a node was committed. Nothing else of a node ever changes."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sessions_app.store.pool import Executor

_LABEL = """
    UPDATE sessions_app_node n SET agent = k.agent
    FROM unnest(%s::uuid[], %s::int[], %s::text[]) AS k (session_id, seq, agent)
    JOIN sessions_app_node o ON o.session_id = k.session_id AND o.seq = k.seq
    WHERE n.session_id = o.session_id AND n.seq = o.seq AND n.agent IS DISTINCT FROM k.agent
    RETURNING n.session_id, n.seq, o.agent
"""


@dataclass(frozen=True, slots=True)
class AgentLabel:
    """The agent of one node."""

    session_id: UUID
    seq: int
    agent: str


async def label_nodes(db: Executor, labels: Sequence[AgentLabel]) -> list[AgentLabel]:
    """Label nodes; what those that had another label were called before."""
    if not labels:
        return []
    columns = ("session_id", "seq", "agent")
    rows = await db.fetch_all(_LABEL, [[getattr(label, name) for label in labels] for name in columns])
    return [AgentLabel(*row) for row in rows if row[2] is not None]
