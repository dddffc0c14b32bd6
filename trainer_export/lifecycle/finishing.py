"""`finish`: a rollout has ended. It serves no more turns; what was said of it rides on its samples."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sessions_app.errors import SessionClosed, SessionNotFound
from sessions_app.json_text import text_of
from sessions_app.store.pool import Database, Transaction
from trainer_export.arguments import Arguments
from trainer_export.handed import lock_to_report, mark_stale

DEFAULT_STATUS = "completed"
REWARD_KEY = "finish"
"""Idempotency key of the reward that a finish reports."""

_FINISH = """
    UPDATE sessions_app_session
    SET status = 'finished', finish_status = %(status)s, finish_metadata = %(metadata)s,
        finished_at = coalesce(finished_at, clock_timestamp()), version = version + 1
    WHERE id = %(session)s AND deleted_at IS NULL AND status IN ('open', 'idle')
    RETURNING finished_at
"""
_REWARD = """
    INSERT INTO sessions_app_reward (session_id, name, value, weight, source, key, created_at)
    VALUES (%(session)s, 'reward', %(reward)s::float8, 1.0, 'finish', %(key)s, clock_timestamp())
    ON CONFLICT (session_id, key) DO NOTHING
"""
_FINISHED = """
    SELECT s.deleted_at IS NOT NULL, s.finish_status, s.finish_metadata, r.value
    FROM sessions_app_session s
    LEFT JOIN sessions_app_reward r ON r.session_id = s.id AND r.key = %(key)s
    WHERE s.id = %(session)s
"""


@dataclass(frozen=True, slots=True)
class Finish:
    """What a driver says at the end of a rollout."""

    status: str = DEFAULT_STATUS
    """In the driver's own words."""
    reward: float | None = None
    metadata: str | None = None
    """JSON text of an object; None = nothing was said."""

    @classmethod
    def of(cls, arguments: Arguments) -> "Finish":
        """The finish of a request. Raises InvalidArgument."""
        metadata: Any = arguments.mapping("metadata")
        return cls(
            status=arguments.text("status", DEFAULT_STATUS) or DEFAULT_STATUS,
            reward=arguments.number("reward"),
            metadata=None if metadata is None else text_of(metadata),
        )


async def finish(db: Database, session_id: UUID, said: Finish) -> bool:
    """Close a session for serving. False where it had been finished with the same words.

    Raises SessionNotFound, and SessionClosed where it was finished with other words.
    """
    parameters = {
        "session": session_id,
        "status": said.status,
        "metadata": said.metadata,
        "reward": said.reward,
        "key": REWARD_KEY,
    }
    async with db.transaction() as transaction:
        await lock_to_report(transaction, session_id)
        if await transaction.fetch_one(_FINISH, parameters) is None:
            await _check_same(transaction, session_id, said, parameters)
            return False
        if said.reward is not None:
            await transaction.execute(_REWARD, parameters)
        await mark_stale(transaction, session_id, "finish")
    return True


async def _check_same(
    transaction: Transaction, session_id: UUID, said: Finish, parameters: dict[str, Any]
) -> None:
    row = await transaction.fetch_one(_FINISHED, parameters)
    if row is None or row[0]:
        raise SessionNotFound(session_id.hex)
    if Finish(row[1], row[3], row[2]) != said:
        raise SessionClosed(f"session was finished before with other values (status={row[1]!r})")
