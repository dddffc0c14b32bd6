"""`manage.py triplets`: recorded spans or events in, triplets out. Needs no database and no services."""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from trainer_export.traces.adapters import ADAPTERS
from trainer_export.traces.answers import answer, answer_request, encoded, error_answer, source_of


class Command(BaseCommand):
    """An error of a conversion is an answer; only a call that cannot be read fails the command."""

    help = "Convert spans or events to triplets (one input from a file, or one request a line with --lines)"
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        """A file, or `--lines`."""
        parser.add_argument(
            "--input", help="JSON file: the spans, or an object with input_spans or input; - is stdin"
        )
        parser.add_argument(
            "--adapter",
            choices=sorted(ADAPTERS),
            default="TracerTraceToTriplet",
            help="default TracerTraceToTriplet",
        )
        parser.add_argument("--options", default="{}", help="JSON object of adapter options")
        parser.add_argument(
            "--lines", action="store_true", help="one request a line from stdin, one answer each"
        )

    def handle(self, *, input: str | None, adapter: str, options: str, lines: bool, **rest: object) -> None:
        """Prints JSON only."""
        if lines:
            _answer_lines(sys.stdin.buffer, self.stdout)
        elif input is None:
            raise CommandError("--input FILE or --lines is needed")
        else:
            self.stdout.write(encoded(answer(adapter, _json(options, "--options"), _source(input))))


def _answer_lines(requests: Iterable[bytes], answers: Any) -> None:
    """Each answer is out before the next line is read. Blank lines are skipped."""
    for line in requests:
        if line.strip():
            answers.write(encoded(_answer_line(line)))
            answers.flush()


def _answer_line(line: bytes) -> Any:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        return error_answer(error)
    return answer_request(request)


def _source(path: str) -> Any:
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"--input {path}: {error}") from None
    source = _json(text, f"--input {path}")
    is_request = isinstance(source, dict) and ("input_spans" in source or "input" in source)
    return source_of(source) if is_request else source


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{where}: no JSON: {error}") from None
