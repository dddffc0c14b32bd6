"""Who has which group, until when. Acknowledged by its holder, once."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sessions_app.store.pool import Executor

_CLAIM = """
    UPDATE trainer_export_handout SET lease = %(lease)s, consumer = %(consumer)s, deliveries = deliveries + 1,
        leased_until = clock_timestamp() + %(lease_s)s::float8 * interval '1 second'
    WHERE id IN (
        SELECT h.id FROM trainer_export_handout h
        WHERE h.state = 'open' AND h.id > %(cursor)s
          AND (h.leased_until IS NULL OR h.leased_until < clock_timestamp())
          AND (NOT %(rewarded)s::bool OR NOT EXISTS (
              SELECT 1 FROM trainer_export_frozensession f WHERE f.handout_id = h.id
              GROUP BY f.rollout_id HAVING NOT bool_or(EXISTS (
                  SELECT 1 FROM sessions_app_reward r WHERE r.session_id = f.session_id))))
        ORDER BY h.id LIMIT %(limit)s FOR UPDATE OF h SKIP LOCKED
    )
    RETURNING id, unit, group_id, late, completed_at, deliveries, leased_until
"""
_DROP = """
    UPDATE trainer_export_handout SET state = 'dropped', reason = %(reason)s, settled_at = clock_timestamp()
    WHERE id = %(id)s AND lease = %(lease)s AND state = 'open'
"""
_ACK = """
    UPDATE trainer_export_handout SET state = 'acked', settled_at = clock_timestamp()
    WHERE id = ANY(%(ids)s) AND lease = %(lease)s AND state = 'open' RETURNING id
"""
_RELEASE = """
    UPDATE trainer_export_handout SET leased_until = NULL, lease = NULL
    WHERE id = ANY(%(ids)s) AND lease = %(lease)s AND state = 'open' RETURNING id
"""
_UNCLAIM = """
    UPDATE trainer_export_handout SET leased_until = NULL, lease = NULL, deliveries = deliveries - 1
    WHERE lease = %(lease)s AND state = 'open'
"""
_ACKED = """
    SELECT id FROM trainer_export_handout WHERE id = ANY(%(ids)s) AND lease = %(lease)s AND state = 'acked'
"""


@dataclass(frozen=True, slots=True)
class Leased:
    """A unit that is this consumer's for now."""

    id: int
    unit: str
    group_id: str | None
    late: bool
    completed_at: datetime
    deliveries: int
    """How often it was handed out, this time included."""
    leased_until: datetime


@dataclass(frozen=True, slots=True)
class Settled:
    """What came of an acknowledgement."""

    acked: list[int]
    """Now or before, by this lease."""
    lost: list[int]
    """Not this lease's any more (or never): somebody else may have trained on them."""


async def claim(
    db: Executor, lease: UUID, *, consumer: str, cursor: int, limit: int, lease_s: float, rewarded: bool
) -> list[Leased]:
    """The next units nobody holds, in order."""
    parameters = {
        "lease": lease,
        "consumer": consumer,
        "cursor": cursor,
        "limit": limit,
        "lease_s": lease_s,
        "rewarded": rewarded,
    }
    rows = await db.fetch_all(_CLAIM, parameters)
    return sorted((Leased(*row) for row in rows), key=lambda one: one.id)


async def drop(db: Executor, lease: UUID, id: int, reason: str) -> None:
    """Take a unit out of the stream."""
    await db.execute(_DROP, {"id": id, "lease": lease, "reason": reason})


async def acknowledge(db: Executor, lease: UUID, ids: Sequence[int]) -> Settled:
    """The holder has what it was handed. Saying so again changes nothing."""
    parameters: dict[str, Any] = {"ids": list(ids), "lease": lease}
    now = {row[0] for row in await db.fetch_all(_ACK, parameters)}
    before = {row[0] for row in await db.fetch_all(_ACKED, parameters)}
    return Settled([id for id in ids if id in now | before], [id for id in ids if id not in now | before])


async def give_back_all(db: Executor, lease: UUID) -> None:
    """Nothing that this lease holds was handed out after all."""
    await db.execute(_UNCLAIM, {"lease": lease})


async def give_back(db: Executor, lease: UUID, ids: Sequence[int]) -> Settled:
    """The holder will not train on it: the next who asks gets it."""
    given = {row[0] for row in await db.fetch_all(_RELEASE, {"ids": list(ids), "lease": lease})}
    return Settled([id for id in ids if id in given], [id for id in ids if id not in given])
