"""Replay payloads of nodes: what the parent's payload says already is not stored again.

An engine that is asked for all rows sends those of the whole context with every turn. Where they begin with
the parent's whole payload, byte for byte, only the rest is stored (`prefix_bytes` names what was left out);
where they do not (rows computed anew, another width), they are stored whole. Invariant: what is loaded is
what the engine sent.
"""

from asyncio import to_thread
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from uuid import UUID

from sessions_app.store.pool import Executor
from sessions_app.store.values import SideData

Key = tuple[UUID, int, str]
"""Session, node, kind."""

_PARENTS = """
    SELECT kind, prefix_bytes + octet_length(payload), digest FROM sessions_app_sidepayload
    WHERE session_id = %s AND node_seq = %s AND digest IS NOT NULL
"""
_CHAINS = """
    WITH RECURSIVE chain AS (
        SELECT p.session_id, p.node_seq, p.kind, p.node_seq AS at, p.prefix_bytes > 0 AS goes_on, 0 AS above
        FROM unnest(%s::uuid[], %s::int[], %s::text[]) AS w (session_id, node_seq, kind)
        JOIN sessions_app_sidepayload p USING (session_id, node_seq, kind)
        UNION ALL
        SELECT c.session_id, c.node_seq, c.kind, p.node_seq, p.prefix_bytes > 0, c.above + 1
        FROM chain c
        JOIN sessions_app_node n ON n.session_id = c.session_id AND n.seq = c.at
        JOIN sessions_app_sidepayload p
            ON p.session_id = c.session_id AND p.node_seq = n.parent_seq AND p.kind = c.kind
        WHERE c.goes_on
    )
    SELECT session_id, node_seq, kind, at FROM chain ORDER BY session_id, node_seq, kind, above DESC
"""
_PAYLOADS = """
    SELECT session_id, node_seq, kind, payload
    FROM unnest(%s::uuid[], %s::int[], %s::text[]) AS w (session_id, node_seq, kind)
    JOIN sessions_app_sidepayload USING (session_id, node_seq, kind)
"""


@dataclass(frozen=True, slots=True)
class _Held:
    """The parent's whole payload."""

    size: int
    digest: bytes


async def beyond_parent(
    db: Executor, session_id: UUID, parent_seq: int | None, side: tuple[SideData, ...]
) -> tuple[SideData, ...]:
    """The riders of a turn without what the parent's say already; those asked for in part stay whole."""
    if all(rider.start_row is not None for rider in side):
        return side
    rows = [] if parent_seq is None else await db.fetch_all(_PARENTS, (session_id, parent_seq))
    held = {kind: _Held(size, bytes(digest)) for kind, size, digest in rows}
    return await to_thread(_all_beyond, side, held)


def _all_beyond(side: tuple[SideData, ...], held: Mapping[str, _Held]) -> tuple[SideData, ...]:
    return tuple(
        rider if rider.start_row is not None else _beyond(rider, held.get(rider.kind)) for rider in side
    )


def _beyond(rider: SideData, held: _Held | None) -> SideData:
    """In one pass over the payload: does it begin with what is held, and what is its own digest?"""
    payload = memoryview(rider.payload)
    shared = held.size if held is not None and held.size <= len(payload) else 0
    taken = sha256(payload[:shared])
    repeats = held is not None and shared == held.size and taken.digest() == held.digest
    taken.update(payload[shared:])
    if not repeats:
        return replace(rider, digest=taken.digest())
    return replace(rider, payload=bytes(payload[shared:]), prefix_bytes=shared, digest=taken.digest())


async def load_payloads(db: Executor, wanted: Collection[Key]) -> dict[Key, tuple[bytes, ...]]:
    """Each payload in the parts it is stored in, which several share; absent ones are left out."""
    if not wanted:
        return {}
    chains: dict[Key, list[Key]] = {}
    for session_id, seq, kind, at in await db.fetch_all(_CHAINS, _columns(wanted)):
        chains.setdefault((session_id, seq, kind), []).append((session_id, at, kind))
    stored = _columns({key for chain in chains.values() for key in chain})
    parts = {(id, seq, kind): bytes(part) for id, seq, kind, part in await db.fetch_all(_PAYLOADS, stored)}
    whole = {key: chain for key, chain in chains.items() if parts.keys() >= set(chain)}  # nothing went since
    return {key: tuple(parts[part] for part in chain) for key, chain in whole.items()}


def _columns(keys: Collection[Key]) -> tuple[list[UUID], list[int], list[str]]:
    ordered = sorted(keys)
    return [key[0] for key in ordered], [key[1] for key in ordered], [key[2] for key in ordered]


async def nodes_with_side(db: Executor, session_id: UUID) -> frozenset[int]:
    """The nodes of a session that have replay payloads."""
    query = "SELECT DISTINCT node_seq FROM sessions_app_sidepayload WHERE session_id = %s"
    return frozenset(row[0] for row in await db.fetch_all(query, (session_id,)))


async def load_side(db: Executor, session_id: UUID, seq: int) -> dict[str, bytes]:
    """The whole replay payloads of one node, by kind."""
    query = "SELECT kind FROM sessions_app_sidepayload WHERE session_id = %s AND node_seq = %s"
    kinds = await db.fetch_all(query, (session_id, seq))
    found = await load_payloads(db, {(session_id, seq, kind) for (kind,) in kinds})
    return {kind: b"".join(parts) for (_, _, kind), parts in found.items()}
