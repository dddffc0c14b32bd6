"""`manage.py up`: everything on one machine, until Ctrl-C or SIGTERM.

Invariant: however it ends, short of kill -9, no child is left; after kill -9 the next `up` clears up.
"""

from argparse import ArgumentParser

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from tito_project.embedded.assembly import Assembly
from tito_project.embedded.errors import ServiceError
from tito_project.embedded.home import home_lock, prepare_home
from tito_project.embedded.ledger import Ledger
from tito_project.embedded.listening import listening_socket
from tito_project.embedded.parts import default_workers
from tito_project.embedded.places import places_of
from tito_project.embedded.supervisor import StopRequested, Supervisor


class Command(BaseCommand):
    """Runs the services, the web server, a worker and the demo engine as children."""

    requires_system_checks = ()
    help = "Run everything on this machine: database, broker, web server, worker, demo engine"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Home, bind and port were already read into the settings."""
        parser.add_argument("--home", help="folder of data, logs and secrets (TITO_HOME, default .tito)")
        parser.add_argument("--bind", help="address to listen on (TITO_BIND, default 127.0.0.1)")
        parser.add_argument("--port", help="port, 0 for a free one (TITO_PORT, default 8000)")
        parser.add_argument("--engine", choices=("demo", "local"), help="engine, whatever TITO_BACKEND says")
        default = default_workers()
        parser.add_argument("--workers", type=int, default=default, help=f"web processes (default {default})")

    def handle(self, *, engine: str | None, workers: int, **options: object) -> None:
        """Returns after a signal; raises CommandError with one clear text otherwise."""
        if workers < 1:
            raise CommandError("--workers must be at least 1")
        try:
            self._run(engine, workers)
        except ServiceError as error:
            raise CommandError(str(error)) from error
        except StopRequested:
            self._say("stopped")

    def _run(self, engine: str | None, workers: int) -> None:
        places = places_of(settings.TITO.home)
        prepare_home(places)
        with home_lock(places):
            ledger = Ledger(places.home / "up.json")
            for name in ledger.stop_orphans():
                self._say(f"stopped {name}, left behind by an earlier `up`")
            supervisor = Supervisor(ledger, self._say)
            supervisor.listen_to_signals()
            with listening_socket(settings.TITO.bind, settings.TITO.port) as listener:
                assembly = Assembly(places, supervisor, listener, workers, engine)
                self._supervise(assembly)

    def _supervise(self, assembly: Assembly) -> None:
        supervisor = assembly.supervisor
        try:
            self._say(f"starting, logs in {assembly.places.logs}")
            self._say(assembly.start().text())
            supervisor.watch()
        finally:
            assembly.listener.close()
            supervisor.stop()

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
