"""Made-up sessions exported natively to Parquet, timed, and removed again."""

import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

import psycopg

from sessions_app.rendering.protocol import Renderer
from sessions_app.store.pool import Database
from tito_project.configuration import Configuration
from trainer_export.dumps.reading import Dump, load
from trainer_export.jobs import job as jobs
from trainer_export.jobs.filters import Filters
from trainer_export.jobs.request import ExportRequest
from trainer_export.jobs.running import look_at, on_loop
from trainer_export.measuring.made_up import Size, made_up


@dataclass(frozen=True, slots=True)
class Measured:
    """One measurement."""

    size: Size
    tokens: int
    seconds: float
    """Processor time of this process, all threads."""
    wall_s: float
    before_mb: float
    """Most memory this process had before the export: programs, tokenizer, made-up sessions."""
    peak_mb: float
    """Most memory this process ever had."""

    @property
    def tokens_a_minute(self) -> float:
        """On one core."""
        return self.tokens / self.seconds * 60

    @property
    def wall_tokens_a_minute(self) -> float:
        """As the clock on the wall says, Postgres included."""
        return self.tokens / self.wall_s * 60


def measure(
    conninfo: str, configuration: Configuration, renderer_of: Callable[[str], Renderer], size: Size
) -> Measured:
    """Make up sessions, export them natively to Parquet, remove them."""
    with _sessions(conninfo, made_up(size, renderer_of("default").vocab_size), size.sessions) as ids:
        folder = Path(tempfile.mkdtemp(prefix="tito-measuring-"))
        before = _peak_mb()
        try:
            spent, clock = time.process_time(), time.perf_counter()
            tokens = _export(conninfo, configuration, renderer_of, ids, folder)
            spent, clock = time.process_time() - spent, time.perf_counter() - clock
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return Measured(size, tokens, spent, clock, before, _peak_mb())


def _peak_mb() -> float:
    counted = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * counted / 1024**2


@contextmanager
def _sessions(conninfo: str, dump: Dump, count: int) -> Iterator[list[UUID]]:
    ids = [uuid4() for _ in range(count)]
    try:
        for session_id in ids:
            load(conninfo, dump, session_id)
        yield ids
    finally:
        with psycopg.connect(conninfo) as connection:
            connection.execute("DELETE FROM trainer_export_sample WHERE session_id = ANY(%s)", (ids,))
            for table in ("node", "message", "tokencheckpoint", "record", "requesthead"):
                connection.execute(f"DELETE FROM sessions_app_{table} WHERE session_id = ANY(%s)", (ids,))
            connection.execute("DELETE FROM sessions_app_session WHERE id = ANY(%s)", (ids,))


def _export(
    conninfo: str,
    configuration: Configuration,
    renderer_of: Callable[[str], Renderer],
    ids: list[UUID],
    folder: Path,
) -> int:
    request = ExportRequest(str(folder), filters=Filters(sessions=[one.hex for one in ids]))

    async def create(db: Database) -> UUID | None:
        return await jobs.create(db, request, "command")

    job_id = on_loop(conninfo, create)
    assert job_id is not None
    job = look_at(conninfo, configuration, renderer_of, job_id, patient=False)
    assert job is not None
    with psycopg.connect(conninfo) as connection:
        for table in ("frozensession", "exportshard"):
            connection.execute(f"DELETE FROM trainer_export_{table} WHERE job_id = %s", (job_id,))
        connection.execute("UPDATE trainer_export_sample SET job_id = NULL WHERE job_id = %s", (job_id,))
        connection.execute("DELETE FROM trainer_export_exportjob WHERE id = %s", (job_id,))
    if job.error_text:
        raise RuntimeError(job.error_text)
    return job.tokens
