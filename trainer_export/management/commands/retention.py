"""`manage.py retention`: let go of old sessions that were handed to training."""

import json
from argparse import ArgumentParser

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from sessions_app.api.wiring import conninfo
from trainer_export.retention import Retention, apply, plan


class Command(BaseCommand):
    """Prints what went as JSON; run it with --dry-run first."""

    help = "Remove sessions that ended long ago and were exported or acknowledged"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """How old, and what of it."""
        parser.add_argument("--dry-run", action="store_true", help="only say what would go")
        parser.add_argument("--days", type=float, help="default TITO_RETENTION_DAYS")
        parser.add_argument("--text-only", action="store_true", help="purge text, keep tokens")
        parser.add_argument(
            "--unexported", action="store_true", help="also what was never handed to training"
        )

    def handle(
        self, *, dry_run: bool, days: float | None, text_only: bool, unexported: bool, **options: object
    ) -> None:
        """Refuses to guess how old."""
        age = settings.TITO.retention_days if days is None else days
        if age is None or age < 0:
            raise CommandError("--days or TITO_RETENTION_DAYS is needed")
        retention = Retention(age, unexported=unexported, text_only=text_only)
        outcome = (plan if dry_run else apply)(conninfo(), retention)
        self.stdout.write(json.dumps(outcome.as_json(), indent=2))
