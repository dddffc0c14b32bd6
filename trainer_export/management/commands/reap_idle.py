"""`manage.py reap_idle`: end sessions that were idle for too long. Workers do so by themselves."""

from django.core.management.base import BaseCommand

from sessions_app.api.wiring import conninfo
from trainer_export.lifecycle.reaping import reap_idle


class Command(BaseCommand):
    """Prints how many."""

    help = "End open sessions whose idle_timeout_s has passed"

    def handle(self, **options: object) -> None:
        """Safe to run at any time, beside anything."""
        self.stdout.write(f"{reap_idle(conninfo())} idle sessions ended")
