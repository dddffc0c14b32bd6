"""Which rollouts of a group have ended. Read from the views export_rollouts and export_groups."""

from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from sessions_app.store.pool import Executor

_ROLLOUT = """
    SELECT coalesce(rollout_id, replace(id::text, '-', '')), group_id FROM sessions_app_session WHERE id = %s
"""
_ATTEMPTS = """
    SELECT coalesce(bool_and(status <> 'open'), false) FROM sessions_app_session
    WHERE rollout_id = %s AND group_id IS NOT DISTINCT FROM %s
"""
_GROUP = "SELECT group_size, rollouts, finished_rollouts, complete FROM export_groups WHERE group_id = %s"


@dataclass(frozen=True, slots=True)
class GroupState:
    """How far a group is."""

    group_id: str
    group_size: int | None
    """None: no session named one, so the group is never known to be complete."""
    rollouts: int
    finished_rollouts: int
    complete: bool


@dataclass(frozen=True, slots=True)
class RolloutState:
    """Where a session's rollout stands."""

    rollout_id: str
    finished: bool
    """None of its sessions is open."""
    group: GroupState | None

    def as_json(self) -> dict[str, Any]:
        """For replies."""
        return asdict(self)


async def group_state(db: Executor, group_id: str) -> GroupState | None:
    """The state of a group; None where no session belongs to it."""
    row = await db.fetch_one(_GROUP, (group_id,))
    return GroupState(group_id, row[0], row[1], row[2], bool(row[3])) if row else None


async def rollout_state(db: Executor, session_id: UUID) -> RolloutState:
    """The rollout of a session that is finished itself."""
    row = await db.fetch_one(_ROLLOUT, (session_id,))
    rollout_id, group_id = row if row else (session_id.hex, None)
    alone = rollout_id == session_id.hex
    attempts = None if alone else await db.fetch_one(_ATTEMPTS, (rollout_id, group_id))
    group = await group_state(db, group_id) if group_id is not None else None
    return RolloutState(rollout_id, bool(attempts[0]) if attempts else True, group)
