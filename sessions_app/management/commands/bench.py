"""`manage.py bench`: what a turn costs here, on a database, an engine and web processes of its own.

Needs nothing running and leaves nothing behind. With DATABASE_URL set that database is used, and keeps the
benchmark's sessions.
"""

import asyncio
import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from time import perf_counter

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console

from tito_project.embedded.errors import ServiceError

_PLAIN_WIDTH = 100


class Command(BaseCommand):
    """Prints a table; the JSON has more."""

    help = "Measure turns: CPU, latency, memory, bytes, against rendering every turn anew"
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """How much, and where to write it."""
        kind = parser.add_mutually_exclusive_group()
        kind.add_argument("--quick", action="store_true", help="at most 3 minutes")
        kind.add_argument("--full", action="store_true", help="everything: seven minutes and more")
        parser.add_argument(
            "--only", nargs="+", metavar="NAME", help="some of its measurements; a wrong name lists them"
        )
        parser.add_argument("--json", type=Path, help="file for all figures")

    def handle(
        self, *, quick: bool, full: bool, json: Path | None, only: list[str] | None, **options: object
    ) -> None:
        """Raises CommandError with one clear line if something is missing."""
        from sessions_app.bench import report, sizes
        from sessions_app.bench.session import NAMES, measured

        name = "quick" if quick else "full" if full else "default"
        chosen = {"quick": sizes.QUICK, "default": sizes.DEFAULT, "full": sizes.FULL}[name]
        if unknown := set(only or ()) - set(NAMES):
            raise CommandError(
                f"--only: there is no {', '.join(sorted(unknown))}; choose from {', '.join(NAMES)}"
            )
        if json is not None and not json.parent.is_dir():
            raise CommandError(f"--json: there is no folder {json.parent}")
        try:
            found = asyncio.run(measured(chosen, name, self._progress(), only or NAMES))
        except ServiceError as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            raise CommandError("interrupted") from None
        if json is not None:
            json.write_text(_text(found), encoding="utf-8")
        Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH).print(report.table(found))

    def _progress(self) -> "Progress":
        return Progress(self)


class Progress:
    """Says what is being measured, with the time since the start."""

    def __init__(self, command: BaseCommand) -> None:
        self._command = command
        self._started = perf_counter()

    def __call__(self, what: str) -> None:
        self._command.stderr.write(f"{perf_counter() - self._started:6.1f} s  {what}")


def _text(found: dict[str, object]) -> str:
    return json.dumps(found, indent=1) + "\n"
