"""Jobs from processes without an event loop: workers and commands. Renderers are built once a process."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar
from uuid import UUID

from sessions_app.rendering.protocol import Renderer
from sessions_app.store.pool import Database
from tito_project.configuration import Configuration
from trainer_export.jobs import job as jobs
from trainer_export.jobs.job import Job
from trainer_export.jobs.work import JobProgress, Workshop, look

T = TypeVar("T")
_CONNECTIONS = 3
"""Rows are read on one, leases kept on another, publishing holds a third."""


def on_loop(conninfo: str, work: Callable[[Database], Coroutine[Any, Any, T]]) -> T:
    """Run work on a loop and a pool of its own."""

    async def run() -> T:
        db = Database(conninfo, max_size=_CONNECTIONS)
        await db.open()
        try:
            return await work(db)
        finally:
            await db.close()

    return asyncio.run(run())


def look_at(
    conninfo: str,
    configuration: Configuration,
    renderer_of: Callable[[str], Renderer],
    job_id: UUID,
    *,
    progress: JobProgress = lambda sessions, tokens, total: None,
    call_help: Callable[[int], None] = lambda shards: None,
    patient: bool = True,
) -> Job | None:
    """A worker's look at a job; the job as it then is."""

    async def work(db: Database) -> Job | None:
        workshop = Workshop(db, configuration, renderer_of, progress, call_help, patient)
        return await look(workshop, job_id)

    return on_loop(conninfo, work)


def unfinished_jobs(conninfo: str) -> list[UUID]:
    """Jobs that nobody works on though there is something to do."""
    return on_loop(conninfo, jobs.unfinished)
