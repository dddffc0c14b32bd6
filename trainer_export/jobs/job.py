"""A job as a value, and the statements that move jobs and shards from state to state.

Every statement names the state it starts from, so sending one twice, or two workers sending it, does it once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sessions_app.json_text import loads, text_of
from sessions_app.store.pool import Executor
from trainer_export.arguments import Arguments
from trainer_export.jobs.filters import Filters
from trainer_export.jobs.request import ExportRequest, ExportRules
from trainer_export.jobs.values import JobState

LEASE_S = 60.0
MOST_ATTEMPTS = 3

_COLUMNS = """
    id, state, source, destination, format, shape, filters, rules, sessions, shard_count, rows, tokens,
    trained_tokens, report, cancel_requested, error_text, created_at, frozen_at, finished_at
"""
_CREATE = """
    INSERT INTO trainer_export_exportjob (
        id, state, source, destination, format, shape, filters, rules, rows, tokens, trained_tokens,
        cancel_requested, created_at)
    VALUES (%s, 'pending', %s, %s, %s, %s, %s, %s, 0, 0, 0, false, clock_timestamp())
    ON CONFLICT (id) DO NOTHING RETURNING id
"""
_CLAIM = """
    UPDATE trainer_export_exportshard SET state = 'running', lease = %(lease)s, attempts = attempts + 1,
        leased_until = clock_timestamp() + %(lease_s)s::float8 * interval '1 second'
    WHERE id = (
        SELECT x.id FROM trainer_export_exportshard x JOIN trainer_export_exportjob j ON j.id = x.job_id
        WHERE x.job_id = %(job)s AND j.state = 'running' AND NOT j.cancel_requested AND x.state <> 'done'
          AND x.attempts < %(most)s
          AND (x.leased_until IS NULL OR x.leased_until < clock_timestamp())
        ORDER BY x.number LIMIT 1 FOR UPDATE OF x SKIP LOCKED
    )
    RETURNING number, name, attempts
"""
_RENEW = """
    UPDATE trainer_export_exportshard x
    SET leased_until = clock_timestamp() + %(lease_s)s::float8 * interval '1 second'
    FROM trainer_export_exportjob j
    WHERE j.id = x.job_id AND x.job_id = %(job)s AND x.number = %(number)s AND x.lease = %(lease)s
      AND x.state = 'running'
    RETURNING j.cancel_requested OR j.state <> 'running'
"""
_COMPLETE = """
    UPDATE trainer_export_exportshard SET state = 'done', lease = NULL, leased_until = NULL,
        error_text = NULL, digest = %(digest)s, size = %(size)s, rows = %(rows)s, tokens = %(tokens)s,
        trained_tokens = %(trained)s, report = %(report)s, finished_at = clock_timestamp()
    WHERE job_id = %(job)s AND number = %(number)s AND lease = %(lease)s AND state = 'running'
    RETURNING number
"""
_RELEASE = """
    UPDATE trainer_export_exportshard SET state = 'pending', lease = NULL, error_text = %(error)s,
        attempts = attempts - %(unused)s,
        leased_until = CASE WHEN %(wait_s)s::float8 > 0
            THEN clock_timestamp() + %(wait_s)s::float8 * interval '1 second' END
    WHERE job_id = %(job)s AND number = %(number)s AND lease = %(lease)s AND state = 'running'
"""
_CANCEL = """
    UPDATE trainer_export_exportjob SET cancel_requested = true,
        state = CASE WHEN state = 'running' THEN state ELSE 'cancelled' END,
        finished_at = CASE WHEN state <> 'running' THEN clock_timestamp() END
    WHERE id = %s AND state IN ('pending', 'running', 'failed') RETURNING id
"""
_CANCELLED = """
    UPDATE trainer_export_exportjob j SET state = 'cancelled', finished_at = clock_timestamp()
    WHERE j.id = %s AND j.state = 'running' AND j.cancel_requested AND NOT EXISTS (
        SELECT 1 FROM trainer_export_exportshard x
        WHERE x.job_id = j.id AND x.state = 'running' AND x.leased_until > clock_timestamp())
    RETURNING id
"""
_FAILED = """
    UPDATE trainer_export_exportjob j SET state = 'failed', finished_at = clock_timestamp(),
        error_text = x.error_text
    FROM trainer_export_exportshard x
    WHERE j.id = %s AND j.state = 'running' AND NOT j.cancel_requested AND x.id = (
        SELECT y.id FROM trainer_export_exportshard y
        WHERE y.job_id = j.id AND y.state <> 'done' AND y.attempts >= %s
          AND (y.state = 'pending' OR y.leased_until < clock_timestamp())
        ORDER BY y.number LIMIT 1)
    RETURNING j.id
"""
_RESUME = """
    WITH j AS (
        UPDATE trainer_export_exportjob
        SET state = CASE WHEN frozen_at IS NULL THEN 'pending' ELSE 'running' END, cancel_requested = false,
            error_text = NULL, finished_at = NULL
        WHERE id = %s AND state IN ('failed', 'cancelled') RETURNING id
    ), x AS (
        UPDATE trainer_export_exportshard SET attempts = 0, leased_until = NULL, state = 'pending',
            lease = NULL
        FROM j WHERE job_id = j.id AND state <> 'done'
    )
    SELECT id FROM j
"""
_BROKEN = """
    UPDATE trainer_export_exportjob SET state = 'failed', finished_at = clock_timestamp(), error_text = %s
    WHERE id = %s AND state IN ('pending', 'running') RETURNING id
"""
_UNFINISHED = """
    SELECT j.id FROM trainer_export_exportjob j
    WHERE (j.state IN ('pending', 'running') OR (j.state = 'cancelled' AND EXISTS (
            SELECT 1 FROM trainer_export_exportshard y WHERE y.job_id = j.id AND y.state <> 'pending')))
      AND NOT EXISTS (
        SELECT 1 FROM trainer_export_exportshard x
        WHERE x.job_id = j.id AND x.state = 'running' AND x.leased_until > clock_timestamp())
    ORDER BY j.created_at LIMIT 100
"""


@dataclass(frozen=True, slots=True)
class Job:
    """An export's row."""

    id: UUID
    state: JobState
    source: str
    destination: str
    format: str
    shape: str
    filters: Filters
    rules: ExportRules
    weights_now: Mapping[str, int] = field(default_factory=dict)
    """By profile: the weights it served when the input was frozen; what staleness counts back from."""
    sessions: int | None = None
    shard_count: int | None = None
    rows: int = 0
    tokens: int = 0
    trained_tokens: int = 0
    report: dict[str, Any] | None = None
    cancel_requested: bool = False
    error_text: str | None = None
    created_at: datetime | None = None
    frozen_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def folder(self) -> str:
        """Where shards wait until all are there; its name hides it from whoever reads the destination."""
        return f".part-{self.id.hex}"


@dataclass(frozen=True, slots=True)
class Claim:
    """A shard that this worker may write, for as long as it renews the lease."""

    job: UUID
    number: int
    name: str
    attempts: int
    lease: UUID


def job_from(row: tuple[Any, ...]) -> Job:
    """A row of `_COLUMNS`."""
    (id, state, source, destination, format, shape, filters, rules, *rest) = row
    stored = loads(rules.encode())
    weights = stored.pop("weights_now", {})
    sessions, shard_count, rows, tokens, trained, report, *more = rest
    return Job(
        id,
        JobState(state),
        source,
        destination,
        format,
        shape,
        Filters.of(Arguments(loads(filters.encode()))),
        ExportRules(**stored),
        weights,
        sessions,
        shard_count,
        rows,
        tokens,
        trained,
        loads(report.encode()) if report else None,
        *more,
    )


async def create(
    db: Executor, request: ExportRequest, source: str, job_id: UUID | None = None
) -> UUID | None:
    """A new pending job; None where one of this id is there already."""
    job_id = job_id or uuid4()
    row = await db.fetch_one(
        _CREATE,
        (
            job_id,
            source,
            request.destination,
            request.format,
            request.shape,
            text_of(request.filters.as_json()),
            text_of(request.rules.as_json()),
        ),
    )
    return row[0] if row else None


async def load(db: Executor, job_id: UUID) -> Job | None:
    """A job; None where there is none."""
    row = await db.fetch_one(f"SELECT {_COLUMNS} FROM trainer_export_exportjob WHERE id = %s", (job_id,))
    return job_from(row) if row else None


async def newest(db: Executor, limit: int, before: datetime | None) -> list[Job]:
    """Jobs, newest first."""
    rows = await db.fetch_all(
        f"SELECT {_COLUMNS} FROM trainer_export_exportjob "
        "WHERE %s::timestamptz IS NULL OR created_at < %s ORDER BY created_at DESC LIMIT %s",
        (before, before, limit),
    )
    return [job_from(row) for row in rows]


async def unfinished(db: Executor) -> list[UUID]:
    """Jobs that nobody works on though there is something to do: to write, to publish, to clear away."""
    return [row[0] for row in await db.fetch_all(_UNFINISHED, ())]


async def claim(db: Executor, job_id: UUID) -> Claim | None:
    """The next shard to write; None where there is none for now."""
    lease = uuid4()
    parameters = {"job": job_id, "lease": lease, "lease_s": LEASE_S, "most": MOST_ATTEMPTS}
    row = await db.fetch_one(_CLAIM, parameters)
    return Claim(job_id, row[0], row[1], row[2], lease) if row else None


async def renew(db: Executor, claim: Claim) -> bool | None:
    """Keep the lease. True: stop, the job ends. None: the lease is lost to another worker."""
    row = await db.fetch_one(_RENEW, _of(claim) | {"lease_s": LEASE_S})
    return row[0] if row else None


async def complete(db: Executor, claim: Claim, result: Mapping[str, Any]) -> bool:
    """Enter what was written; False where the lease was lost meanwhile."""
    return await db.fetch_one(_COMPLETE, _of(claim) | dict(result)) is not None


async def release(db: Executor, claim: Claim, error: str | None, wait_s: float) -> None:
    """Give a shard back: after an error to be tried again later, without one as if it had not been tried."""
    unused = 0 if error else 1
    await db.execute(_RELEASE, _of(claim) | {"error": error, "unused": unused, "wait_s": wait_s})


def _of(claim: Claim) -> dict[str, Any]:
    return {"job": claim.job, "number": claim.number, "lease": claim.lease}


async def cancel(db: Executor, job_id: UUID) -> bool:
    """Ask a job to end, a failed one too: it keeps nothing then. False where it is done or was cancelled."""
    return await db.fetch_one(_CANCEL, (job_id,)) is not None


async def resume(db: Executor, job_id: UUID) -> bool:
    """Start a failed or cancelled job again where it stood. False for any other."""
    return await db.fetch_one(_RESUME, (job_id,)) is not None


async def end_if_due(db: Executor, job_id: UUID) -> None:
    """Cancelled once nobody writes any more; failed once a shard was tried too often."""
    if await db.fetch_one(_CANCELLED, (job_id,)) is None:
        await db.fetch_one(_FAILED, (job_id, MOST_ATTEMPTS))


async def fail(db: Executor, job_id: UUID, error: str) -> None:
    """End a job that cannot go on."""
    await db.fetch_one(_BROKEN, (error, job_id))
