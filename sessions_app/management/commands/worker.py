"""`manage.py worker`: one Celery worker."""

import os
from argparse import ArgumentParser

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from tito_project.celery import app


class Command(BaseCommand):
    """Runs the worker in this process."""

    requires_system_checks = ()
    help = "Run a Celery worker (services must be running or given by DATABASE_URL and REDIS_URL)"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Few: the rest is settings."""
        parser.add_argument("--concurrency", type=int, default=2, help="tasks at a time (default 2)")
        parser.add_argument("--beat", action="store_true", help="also send the periodic tasks (one worker)")

    def handle(self, *, concurrency: int, beat: bool, **options: object) -> None:
        """Returns after a warm shutdown."""
        if concurrency < 1:
            raise CommandError("--concurrency must be at least 1")
        arguments = ["worker", "--concurrency", str(concurrency), "--loglevel", "INFO"]
        arguments += ["--hostname", f"tito-{os.getpid()}@%h", "--without-mingle", "--without-gossip"]
        if beat:
            arguments += ["--beat", "--schedule", str(settings.TITO.home / "beat")]
        app.worker_main(arguments)
