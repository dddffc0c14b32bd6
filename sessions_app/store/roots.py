"""The roots of a session, as the rules that class a new one look at them."""

import json
from uuid import UUID

from sessions_app.history.roots import EarlierRoot, system_text
from sessions_app.store.pool import Executor

_LOOKED_AT = 64


async def load_earlier(db: Executor, session_id: UUID) -> list[EarlierRoot]:
    """The first roots with their system prompts, in commit order."""
    rows = await db.fetch_all(
        "SELECT n.seq, n.root_class, m.body FROM sessions_app_node n "
        "JOIN sessions_app_message m "
        "ON m.session_id = n.session_id AND m.node_seq = n.seq AND m.position = 0 "
        "WHERE n.session_id = %s AND n.parent_seq IS NULL ORDER BY n.seq LIMIT %s",
        (session_id, _LOOKED_AT),
    )
    return [EarlierRoot(seq, root_class, system_text([json.loads(body)])) for seq, root_class, body in rows]


async def load_root_of(db: Executor, session_id: UUID, seq: int) -> tuple[int, str | None] | None:
    """Seq and class of the root that a node hangs under."""
    row = await db.fetch_one(
        "SELECT r.seq, r.root_class FROM sessions_app_node n "
        "JOIN sessions_app_node r ON r.session_id = n.session_id AND r.seq = n.root_seq "
        "WHERE n.session_id = %s AND n.seq = %s",
        (session_id, seq),
    )
    return (row[0], row[1]) if row else None


async def load_detected_harness(db: Executor, session_id: UUID) -> str | None:
    """The harness that the session's first committed turn showed; None before that, or for an unknown one."""
    row = await db.fetch_one("SELECT detected_harness FROM sessions_app_session WHERE id = %s", (session_id,))
    return row[0] if row else None


async def overrule(db: Executor, session_id: UUID, seq: int, root_class: str, evidence: str) -> bool:
    """Class a root by hand. A label: neither matching nor what is fed changes. False: no such root."""
    row = await db.fetch_one(
        "UPDATE sessions_app_node SET root_class = %s, root_evidence = %s "
        "WHERE session_id = %s AND seq = %s AND parent_seq IS NULL RETURNING seq",
        (root_class, evidence, session_id, seq),
    )
    return row is not None
