"""Real Celery workers on the test database, and jobs for them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import psycopg

from sessions_app.api.wiring import conninfo
from sessions_app.store.pool import Database
from tests.integration.web import ROOT, database_url
from trainer_export.jobs import job as jobs
from trainer_export.jobs.filters import Filters
from trainer_export.jobs.job import Job
from trainer_export.jobs.request import ExportRequest, ExportRules
from trainer_export.jobs.running import on_loop

SLOW = "tests.exports.slow_hooks.slow"


class Worker:
    """One `manage.py worker` with the processes it starts."""

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        self._log = log.open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "manage.py", "worker", "--concurrency", "2", "--beat"],
            cwd=ROOT,
            env={**os.environ, "DATABASE_URL": database_url(), **environment},
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    def kill(self) -> None:
        """kill -9 of all of it."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(10)

    def stop(self) -> None:
        """Warm shutdown, and what is left of it killed."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(15)
            except subprocess.TimeoutExpired:
                self.kill()
        self._log.close()


@contextmanager
def worker(environment: dict[str, str], folder: Path) -> Iterator[Worker]:
    """A worker until the block ends."""
    running = Worker(environment, folder / "worker.log")
    try:
        yield running
    finally:
        running.stop()


def asked(out: Path, sessions: list[str], shard_tokens: int, postprocessor: str = SLOW) -> UUID:
    """A pending job that nobody was told of."""
    request = ExportRequest(
        str(out),
        filters=Filters(sessions=sessions),
        rules=ExportRules(postprocessor=postprocessor, shard_tokens=shard_tokens),
    )

    async def create(db: Database) -> UUID | None:
        return await jobs.create(db, request, "command")

    job = on_loop(conninfo(), create)
    assert job is not None
    return job


def job_now(job: UUID) -> Job:
    async def load(db: Database) -> Job | None:
        return await jobs.load(db, job)

    found = on_loop(conninfo(), load)
    assert found is not None
    return found


def shard_states(job: UUID) -> list[str]:
    with psycopg.connect(conninfo()) as connection:
        rows = connection.execute(
            "SELECT state FROM trainer_export_exportshard WHERE job_id = %s ORDER BY number", (job,)
        ).fetchall()
    return [row[0] for row in rows]


def leases_run_out(job: UUID) -> None:
    """As if a minute had passed."""
    with psycopg.connect(conninfo(), autocommit=True) as connection:
        connection.execute(
            "UPDATE trainer_export_exportshard SET leased_until = now() "
            "WHERE job_id = %s AND state = 'running'",
            (job,),
        )


def wait_for(holds: Callable[[], bool], timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, "it did not come to that in time"
        time.sleep(0.05)
