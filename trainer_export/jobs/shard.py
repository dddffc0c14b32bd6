"""One shard: frozen sessions in, one complete file in the job's hidden folder out, and a report.

Repeatable: the same shard gives the same bytes, so two workers that write it do no harm. A heartbeat keeps
the lease while rows are made; whoever loses it, or is told to stop, leaves nothing behind.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from sessions_app.json_text import text_of
from sessions_app.store.pool import LOST_CONNECTION, Database
from trainer_export import handed
from trainer_export.handed import Handed
from trainer_export.jobs import job as jobs
from trainer_export.jobs.destinations import Destination
from trainer_export.jobs.job import LEASE_S, Claim, Job
from trainer_export.jobs.report import Tally
from trainer_export.jobs.rows import FROZEN_COLUMNS, Frozen, Making, PlacedRow, frozen_from, made_rows
from trainer_export.jobs.trace_rows import report_name, write_traces
from trainer_export.samples.rewards import number_of
from trainer_export.shapes import SHAPES, TRACE_SHAPES, Shape, layout_of
from trainer_export.writers import Writer, open_writer

_INPUTS = f"SELECT {FROZEN_COLUMNS} WHERE f.job_id = %s AND f.shard = %s ORDER BY f.position"
_RENEW_EVERY_S = LEASE_S / 4

Progress = Callable[[int, int], None]
"""Told after each batch: sessions done and tokens written since the last time."""


class Stopped(Exception):
    """The job was cancelled, or another worker holds the shard now."""


@dataclass(slots=True)
class _Lease:
    """Whether to go on."""

    stopped: bool = False

    def check(self) -> None:
        if self.stopped:
            raise Stopped


async def write_shard(
    db: Database, job: Job, claim: Claim, destination: Destination, making: Making, progress: Progress
) -> bool:
    """Make, publish and enter one shard. False where the lease was lost to somebody. Raises Stopped, and
    what a destination raises.
    """
    inputs = [frozen_from(row) for row in await db.fetch_all(_INPUTS, (job.id, claim.number))]
    tally = Tally()
    with destination.staging(job.folder) as folder:
        file = folder / claim.name
        async with _kept(db, claim) as lease:
            writer = open_writer(job.format, file, layout_of(job.shape))
            report = folder / report_name(claim.name)
            if job.shape in TRACE_SHAPES:
                shape = TRACE_SHAPES[job.shape]
                await write_traces(db, writer, inputs, shape, making, tally, lease.check, progress, report)
                ledger = []
            else:
                ledger = await _write(db, writer, inputs, SHAPES[job.shape], making, tally, lease, progress)
            written = {"digest": await asyncio.to_thread(_digest, file), "size": file.stat().st_size}
            for made in (file, report):
                if made.exists():
                    await asyncio.to_thread(destination.publish, made, f"{job.folder}/{made.name}")
            lease.check()
    return await _enter(db, claim, tally, ledger, written)


async def _write(
    db: Database,
    writer: Writer,
    inputs: list[Frozen],
    shape: Shape,
    making: Making,
    tally: Tally,
    lease: _Lease,
    progress: Progress,
) -> list[Handed]:
    ledger: list[Handed] = []
    seen = 0
    try:
        async for rows in made_rows(db, inputs, making, tally):
            lease.check()
            await asyncio.to_thread(_append, writer, shape, rows)
            ledger += [ledger_entry(one) for one in rows]
            progress(tally.sessions - seen, sum(len(one.row.tokens) for one in rows))
            seen = tally.sessions
        await asyncio.to_thread(writer.close)
    except BaseException:
        writer.abandon()
        raise
    return ledger


def _append(writer: Writer, shape: Shape, rows: list[PlacedRow]) -> None:
    for one in rows:
        for row in shape.cut(one.row, one.place):
            writer.write(row)


def ledger_entry(one: PlacedRow) -> Handed:
    """A row as the ledger of handed rows keeps it."""
    row = one.row
    return Handed(
        session_id=UUID(row.session_id),
        sample_id=row.sample_id,
        leaf=row.leaf,
        known=one.known,
        rollout_id=row.rollout_id,
        group_id=row.group_id,
        status=row.status,
        tokens=len(row.tokens),
        trained=row.trained,
        reward=number_of(row.reward),
    )


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


async def _enter(
    db: Database,
    claim: Claim,
    tally: Tally,
    ledger: list[Handed],
    written: dict[str, Any],
) -> bool:
    result = written | {
        "rows": tally.rows,
        "tokens": tally.tokens,
        "trained": tally.trained_tokens,
        "report": text_of(tally.as_json()),
    }
    async with db.transaction() as transaction:
        if not await jobs.complete(transaction, claim, result):
            return False
        await handed.enter(transaction, ledger, "export", claim.job)
    return True


@asynccontextmanager
async def _kept(db: Database, claim: Claim) -> AsyncIterator[_Lease]:
    """Keeps the lease while the block runs."""
    lease = _Lease()
    heart = asyncio.create_task(_beat(db, claim, lease))
    try:
        yield lease
    finally:
        heart.cancel()


async def _beat(db: Database, claim: Claim, lease: _Lease) -> None:
    while not lease.stopped:
        await asyncio.sleep(_RENEW_EVERY_S)
        try:
            lease.stopped = await jobs.renew(db, claim) is not False
        except LOST_CONNECTION:
            continue  # the lease may run out; then the shard is written twice, to the same bytes
