"""`manage.py export_samples`: make an export in this process, with a progress bar.

The job is a row like any other: killed in the middle, it is finished by a worker, or by `--resume`.
"""

import json
import sys
from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from sessions_app.api.wiring import conninfo
from sessions_app.errors import InvalidJson, TitoError
from sessions_app.json_text import loads
from sessions_app.store.pool import Database
from trainer_export.arguments import Arguments
from trainer_export.jobs import job as jobs
from trainer_export.jobs.checking import check_export
from trainer_export.jobs.copying import copy_job
from trainer_export.jobs.filters import Filters
from trainer_export.jobs.job import Job
from trainer_export.jobs.report import differences
from trainer_export.jobs.request import ExportRequest, ExportRules
from trainer_export.jobs.running import look_at, on_loop
from trainer_export.jobs.values import FORMATS, SHAPES, JobState
from trainer_export.renderers import profile_renderer


class Command(BaseCommand):
    """Prints the report as JSON; what goes wrong is the command's error."""

    help = "Export proven training rows"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What an export is asked for."""
        parser.add_argument("--out", metavar="URL", help="folder or fsspec URL (s3://…) to publish in")
        parser.add_argument("--format", choices=FORMATS, default="parquet", help="default parquet")
        parser.add_argument("--shape", choices=SHAPES, default="native", help="of rows; default native")
        parser.add_argument("--session", action="append", metavar="ID", help="only this session; repeatable")
        parser.add_argument("--filters", default="{}", metavar="JSON", help='e.g. {"finished": true}')
        parser.add_argument("--picker", help="built-in name or dotted path (default TITO_SAMPLE_PICKER)")
        parser.add_argument("--postprocessor", help="as --picker (default TITO_SAMPLE_POSTPROCESSOR)")
        parser.add_argument("--max-seq-len", type=int, metavar="N", help="most tokens of a row")
        parser.add_argument(
            "--fork-threshold-tokens",
            type=int,
            metavar="N",
            help="un-healed chains: a shorter completion goes on the row before it",
        )
        parser.add_argument("--shard-tokens", type=int, metavar="N", help="stored tokens of a shard")
        parser.add_argument(
            "--traces", metavar="JSON", help='triplets, transition, trajectory: e.g. {"mode": "better"}'
        )
        parser.add_argument("--drift", action="store_true", help="compare with a fresh render (slow)")
        parser.add_argument("--check", action="store_true", help="read the files back and validate each row")
        parser.add_argument("--rerun", metavar="JOB", help="the same frozen input again, to --out")
        parser.add_argument("--resume", metavar="JOB", help="go on with a job that was killed or failed")
        parser.add_argument("--diff", nargs=2, metavar="JOB", help="what differs between two reports")

    def handle(self, **options: Any) -> None:
        """Makes the export."""
        try:
            if options["diff"]:
                self._diff(*options["diff"])
                return
            job = self._work(self._job_id(options))
            if options["check"]:
                self._check(job)
        except TitoError as error:
            raise CommandError(str(error)) from None
        self.stderr.write(f"export {job.id.hex} in {job.destination}", self.style.SUCCESS)
        self.stdout.write(json.dumps(job.report, indent=2))

    def _job_id(self, options: dict[str, Any]) -> UUID:
        if options["resume"]:
            return self._resumed(_job_id(options["resume"]))
        if not options["out"]:
            raise CommandError("--out URL is needed")
        if options["rerun"]:
            source = _job_id(options["rerun"])
            return on_loop(conninfo(), lambda db: copy_job(db, source, options["out"], "command"))
        request = _request(options)

        async def create(db: Database) -> UUID | None:
            return await jobs.create(db, request, "command")

        job_id = on_loop(conninfo(), create)
        assert job_id is not None
        return job_id

    def _resumed(self, job_id: UUID) -> UUID:
        async def resume(db: Database) -> Job | None:
            await jobs.resume(db, job_id)
            return await jobs.load(db, job_id)

        if on_loop(conninfo(), resume) is None:
            raise CommandError(f"there is no export {job_id.hex}")
        return job_id

    def _work(self, job_id: UUID) -> Job:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(file=sys.stderr)) as bar:
            task = bar.add_task("sessions", total=None)

            def advance(sessions: int, tokens: int, total: int) -> None:
                bar.update(task, advance=sessions, total=total)

            try:
                job = look_at(
                    conninfo(), settings.TITO, profile_renderer, job_id, progress=advance, patient=False
                )
            except KeyboardInterrupt:
                raise CommandError(f"interrupted: --resume {job_id.hex} goes on, or a worker does") from None
        return _ended(job, job_id)

    def _diff(self, one: str, other: str) -> None:
        async def both(db: Database) -> list[Job | None]:
            return [await jobs.load(db, _job_id(text)) for text in (one, other)]

        found = on_loop(conninfo(), both)
        first, second = (_ended(job, _job_id(text)) for job, text in zip(found, (one, other), strict=True))
        self.stdout.write(json.dumps(differences(first.report, second.report), indent=2))

    def _check(self, job: Job) -> None:
        wrong = check_export(job)
        for line in wrong[:20]:
            self.stderr.write(line)
        if wrong:
            raise CommandError(f"{len(wrong)} problems in the files of export {job.id.hex}")


def _request(options: dict[str, Any]) -> ExportRequest:
    given = Arguments.of(_json(options["filters"], "--filters"), "--filters", "--filters: ")
    filters = Filters.of(given)
    if options["session"]:
        filters = Filters.of(Arguments({**filters.as_json(), "sessions": options["session"]}))
    names = (
        "picker", "postprocessor", "max_seq_len", "fork_threshold_tokens", "shard_tokens", "drift",
    )  # fmt: skip
    named = {name: options[name] for name in names if options[name] is not None}
    if options["traces"]:
        named["traces"] = _json(options["traces"], "--traces")
    rules = Arguments(named, "--")
    return ExportRequest(
        destination=options["out"],
        format=options["format"],
        shape=options["shape"],
        filters=filters,
        rules=ExportRules.of(rules, settings.TITO, allow_dotted=True),
    )


def _json(text: str, option: str) -> Any:
    try:
        return loads(text.encode())
    except InvalidJson as error:
        raise CommandError(f"{option}: {str(error).removeprefix('invalid JSON body: ')}") from None


def _job_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise CommandError(f"{text!r} is no export's id") from None


def _ended(job: Job | None, job_id: UUID) -> Job:
    if job is None:
        raise CommandError(f"there is no export {job_id.hex}")
    if job.state is not JobState.DONE:
        raise CommandError(f"export {job_id.hex} is {job.state}: {job.error_text or 'others work on it'}")
    return job
