"""manage.py recover: settle what ended processes left behind."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db.models import DurationField, ExpressionWrapper, F
from django.db.models.functions import Now

from sessions_app.api.wiring import conninfo
from sessions_app.models import ProcessLease
from sessions_app.turns.recover import settle_dangling

_LONGEST_S = 2**31


class Command(BaseCommand):
    """Marks requests of dead processes as lost; safe at any time, also while servers run."""

    help = "Settle requests whose process ended before they were answered: they are marked lost."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Options."""
        parser.add_argument(
            "--older-than-s",
            type=float,
            default=None,
            help="Also requests of living processes, if older than this many seconds "
            "(default: TITO_ENGINE_TIMEOUT plus a minute)",
        )
        parser.add_argument("--list", action="store_true", help="Only show the web processes")

    def handle(self, *args: Any, **options: Any) -> None:
        """Settle and say how many."""
        if options["list"]:
            self._list()
            return
        older = options["older_than_s"]
        limit = settings.TITO.engine_timeout + 60 if older is None else older
        if not 0 <= limit <= _LONGEST_S:
            raise CommandError(f"--older-than-s must be a number from 0 to {_LONGEST_S}")
        lost = settle_dangling(conninfo(), limit)
        self.stdout.write(f"{lost} request(s) marked lost")

    def _list(self) -> None:
        seconds = ExpressionWrapper(F("expires_at") - Now(), output_field=DurationField())
        for lease in ProcessLease.objects.annotate(left=seconds):
            state = f"live for {lease.left.total_seconds():.0f} s" if lease.left > timedelta(0) else "expired"
            self.stdout.write(f"{lease.process}  {lease.host}  pid {lease.pid}  {state}")
