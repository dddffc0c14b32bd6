"""manage.py recover: settle what ended processes left behind."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from sessions_app.api.wiring import conninfo
from sessions_app.turns.recover import settle_dangling


class Command(BaseCommand):
    """Marks requests of dead processes as lost; safe at any time, also while servers run."""

    help = "Settle requests whose process ended before they were answered: they are marked lost."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Options."""
        parser.add_argument(
            "--older-than-s",
            type=float,
            default=None,
            help="Only requests older than this many seconds (default: TITO_ENGINE_TIMEOUT plus a minute)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Settle and say how many."""
        older = options["older_than_s"]
        limit = settings.TITO.engine_timeout + 60 if older is None else older
        lost = settle_dangling(conninfo(), limit)
        self.stdout.write(f"{lost} request(s) marked lost")
