"""Nodes by the response ids that clients and their spans know. Reads only.

An id that nodes of several sessions have (an engine that starts counting anew) leads nowhere unless the
session is known.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from sessions_app.response_names import node_named, stored_ids
from sessions_app.store.pool import Executor

_BY_ID = "SELECT response_id, session_id, seq FROM sessions_app_node WHERE response_id = ANY(%s)"
_BY_SEQ = """
    SELECT n.session_id, n.seq FROM sessions_app_node n
    JOIN unnest(%s::uuid[], %s::int[]) AS k (session_id, seq) ON k.session_id = n.session_id AND k.seq = n.seq
"""
_INT32 = 2**31


@dataclass(frozen=True, slots=True)
class ServedNode:
    """The node of a response."""

    session_id: UUID
    seq: int


async def nodes_of_responses(db: Executor, told: Iterable[str]) -> dict[str, list[ServedNode]]:
    """Nodes by the ids asked for; ids that nobody was told are absent."""
    asked = set(told)
    named = {text: node for text in asked if (node := node_named(text)) and node.seq < _INT32}
    found = await _by_seq(db, {text: ServedNode(node.session_id, node.seq) for text, node in named.items()})
    spellings = {text: stored_ids(text) for text in asked - set(named)}
    stored = await _by_id(db, {one for group in spellings.values() for one in group})
    for text, group in spellings.items():
        nodes = [node for one in group for node in stored.get(one, ())]
        if nodes:
            found[text] = nodes
    return found


async def sessions_of_responses(db: Executor, told: Iterable[str]) -> dict[str, UUID]:
    """Sessions by response id, where only one session has it."""
    sessions = {}
    for text, nodes in (await nodes_of_responses(db, told)).items():
        if len({node.session_id for node in nodes}) == 1:
            sessions[text] = nodes[0].session_id
    return sessions


async def _by_seq(db: Executor, named: dict[str, ServedNode]) -> dict[str, list[ServedNode]]:
    if not named:
        return {}
    nodes = list(named.values())
    rows = await db.fetch_all(_BY_SEQ, ([node.session_id for node in nodes], [node.seq for node in nodes]))
    there = {ServedNode(*row) for row in rows}
    return {text: [node] for text, node in named.items() if node in there}


async def _by_id(db: Executor, ids: set[str]) -> dict[str, list[ServedNode]]:
    found: dict[str, list[ServedNode]] = {}
    rows = await db.fetch_all(_BY_ID, (sorted(ids),)) if ids else []
    for response_id, session_id, seq in rows:
        found.setdefault(response_id, []).append(ServedNode(session_id, seq))
    return found
