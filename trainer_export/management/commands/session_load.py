"""`manage.py session_load FILE`: a session of another server, or of an earlier day."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from uuid import uuid4

from django.core.management.base import BaseCommand, CommandError

from sessions_app.api.wiring import conninfo
from sessions_app.errors import InvalidArgument
from trainer_export.dumps.reading import load, parse


class Command(BaseCommand):
    """All of the session or nothing."""

    help = "Load a session that session_dump wrote"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What and as what."""
        parser.add_argument("file", metavar="FILE", help="- is standard input")
        parser.add_argument(
            "--new-id", action="store_true", help="under a new id, beside the one that is here"
        )

    def handle(self, *, file: str, new_id: bool, **options: object) -> None:
        """Prints the session's id."""
        try:
            data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
            loaded = load(conninfo(), parse(data), uuid4() if new_id else None)
        except (InvalidArgument, OSError) as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{loaded.session_id.hex} ({loaded.nodes} nodes, profile {loaded.profile})")
