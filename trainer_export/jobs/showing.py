"""Jobs as JSON, for the API and the admin."""

from typing import Any

from sessions_app.store.pool import Executor
from trainer_export.jobs.job import Job

_SHARDS = """
    SELECT number, name, state, attempts, sessions, rows, tokens, trained_tokens, size, digest, error_text
    FROM trainer_export_exportshard WHERE job_id = %s ORDER BY number
"""
_NAMES = (
    "number", "name", "state", "attempts", "sessions", "rows", "tokens", "trained_tokens", "bytes",
    "sha256", "error",
)  # fmt: skip


def job_json(job: Job) -> dict[str, Any]:
    """A job without its shards."""
    return {
        "id": job.id.hex,
        "state": str(job.state),
        "source": job.source,
        "destination": job.destination,
        "format": job.format,
        "shape": job.shape,
        "filters": job.filters.as_json(),
        "rules": job.rules.as_json(),
        "cancel_requested": job.cancel_requested,
        "sessions": job.sessions,
        "shard_count": job.shard_count,
        "rows": job.rows,
        "tokens": job.tokens,
        "trained_tokens": job.trained_tokens,
        "error": job.error_text,
        "created_at": _moment(job.created_at),
        "frozen_at": _moment(job.frozen_at),
        "finished_at": _moment(job.finished_at),
    }


def _moment(at: Any) -> str | None:
    return at.isoformat() if at else None


async def shards_json(db: Executor, job: Job) -> list[dict[str, Any]]:
    """The shards of a job and how far each is."""
    rows = await db.fetch_all(_SHARDS, (job.id,))
    return [dict(zip(_NAMES, row, strict=True)) for row in rows]
