"""`manage.py session_dump ID`: one session as one file."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from sessions_app.api.wiring import conninfo
from sessions_app.errors import SessionNotFound
from sessions_app.store.pool import Database
from trainer_export.dumps.writing import dump
from trainer_export.jobs.running import on_loop


class Command(BaseCommand):
    """The file holds the whole conversation; mind whom you send it to."""

    help = "Write a session, deleted ones too, to a file that session_load reads"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Which one and where to."""
        parser.add_argument("session", metavar="ID", help="32 hex digits")
        parser.add_argument("--out", metavar="FILE", help="default ID.tito.gz; - is standard output")

    def handle(self, *, session: str, out: str | None, **options: object) -> None:
        """Writes the file."""
        try:
            session_id = UUID(session)
        except ValueError:
            raise CommandError(f"{session!r} is no session id") from None

        async def work(db: Database) -> bytes:
            return await dump(db, session_id)

        try:
            data = on_loop(conninfo(), work)
        except SessionNotFound as error:
            raise CommandError(str(error)) from None
        if out == "-":
            sys.stdout.buffer.write(data)
            return
        file = Path(out or f"{session_id.hex}.tito.gz")
        try:
            file.write_bytes(data)
        except OSError as error:
            raise CommandError(f"--out {file}: {error.strerror}") from None
        self.stdout.write(f"{file}: {len(data)} bytes")
