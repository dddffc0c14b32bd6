"""The last step of an export: shards get their names, then the manifest says that all are there.

The manifest is written last and holds nothing but what the input and the rules determine, so the same job
gives the same manifest.
"""

import asyncio
from typing import Any

from sessions_app.errors import Conflict
from sessions_app.json_text import dumps, loads, text_of
from sessions_app.store.pool import Database, Transaction
from trainer_export.jobs.destinations import Destination
from trainer_export.jobs.job import Job
from trainer_export.jobs.report import Tally
from trainer_export.jobs.trace_rows import report_name
from trainer_export.shapes import TRACE_SHAPES, layout_of

MANIFEST = "manifest.json"
SCHEMA = "tito.export/1"

_LOCK = """
    SELECT j.id FROM trainer_export_exportjob j
    WHERE j.id = %s AND j.state = 'running' AND NOT j.cancel_requested AND NOT EXISTS (
        SELECT 1 FROM trainer_export_exportshard x WHERE x.job_id = j.id AND x.state <> 'done')
    FOR UPDATE OF j SKIP LOCKED
"""
_SHARDS = """
    SELECT name, digest, size, sessions, rows, tokens, trained_tokens, report
    FROM trainer_export_exportshard WHERE job_id = %s ORDER BY number
"""
_DONE = """
    UPDATE trainer_export_exportjob SET state = 'done', finished_at = clock_timestamp(), error_text = NULL,
        rows = %(rows)s, tokens = %(tokens)s, trained_tokens = %(trained)s, report = %(report)s
    WHERE id = %(job)s
"""


async def publish(db: Database, job: Job, destination: Destination) -> bool:
    """Publish a job whose shards are all written, and end it. False where it is not so far, or another worker
    is at it. Raises Conflict where the destination holds another export.
    """
    async with db.transaction() as transaction:
        if await transaction.fetch_one(_LOCK, (job.id,)) is None:
            return False
        shards, tally = await _written(transaction, job)
        report = tally.as_json()
        manifest = dumps(_manifest(job, shards, report))
        await asyncio.to_thread(_put, destination, job, [shard["name"] for shard in shards], manifest)
        await transaction.execute(
            _DONE,
            {
                "job": job.id,
                "rows": tally.rows,
                "tokens": tally.tokens,
                "trained": tally.trained_tokens,
                "report": text_of(report),
            },
        )
    return True


async def _written(transaction: Transaction, job: Job) -> tuple[list[dict[str, Any]], Tally]:
    shards, tally = [], Tally()
    for name, digest, size, sessions, rows, tokens, trained, report in await transaction.fetch_all(
        _SHARDS, (job.id,)
    ):
        tally.merge(loads(report.encode()))
        shards.append(
            {
                "name": name,
                "sha256": digest,
                "bytes": size,
                "sessions": sessions,
                "rows": rows,
                "tokens": tokens,
                "trained_tokens": trained,
            }
        )
    return shards, tally


def _manifest(job: Job, shards: list[dict[str, Any]], report: dict[str, Any]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "shape": job.shape,
        "shape_schema": layout_of(job.shape).schema,
        "format": job.format,
        "filters": job.filters.as_json(),
        "rules": job.rules.as_json(),
        "shards": shards,
        "report": report,
    }


def _put(destination: Destination, job: Job, names: list[str], manifest: bytes) -> None:
    """Idempotent: a worker that died in between is followed by another."""
    present = destination.read(MANIFEST)
    if present is not None and present != manifest:
        raise Conflict(f"{job.destination} holds another export; choose a folder of its own")
    reports = [report_name(name) for name in names] if job.shape in TRACE_SHAPES else []
    for name in [*names, *reports]:
        destination.move(f"{job.folder}/{name}", name)
    with destination.staging(job.folder) as folder:
        file = folder / MANIFEST
        file.write_bytes(manifest)
        destination.publish(file, MANIFEST)
    destination.clear(job.folder)
