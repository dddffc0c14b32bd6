"""`manage.py serve`: the web server alone, against services that are already there."""

import logging
import socket
import sys
from argparse import SUPPRESS, ArgumentParser

import psycopg
import uvicorn
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from sessions_app.api.wiring import conninfo
from sessions_app.errors import TitoError
from sessions_app.turns.recover import settle_dangling
from tito_project import open_files
from tito_project.embedded.errors import ServiceError
from tito_project.embedded.listening import listening_socket, port_of
from tito_project.embedded.parts import default_workers

logger = logging.getLogger("uvicorn")

_KEEP_ALIVE_S = 75
"""Longer than clients keep idle connections, so that they close them and not we."""
_LAST_BYTES_S = 5
"""For what is still being answered when the turns in flight have ended (TITO_DRAIN_S)."""
_HANG_S = 60
"""A process that does not answer its parent for so long is replaced."""


class Command(BaseCommand):
    """Runs uvicorn on the ASGI application."""

    requires_system_checks = ()
    help = "Run the web server (services must be running or given by DATABASE_URL and REDIS_URL)"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Bind and port were already read into the settings."""
        parser.add_argument("--bind", help="address to listen on (TITO_BIND)")
        parser.add_argument("--port", help="port, 0 for a free one (TITO_PORT)")
        default = default_workers()
        parser.add_argument("--workers", type=int, default=default, help=f"web processes (default {default})")
        parser.add_argument("--fd", type=int, help=SUPPRESS)

    def handle(self, *, workers: int, fd: int | None, **options: object) -> None:
        """Returns after a graceful shutdown."""
        if workers < 1:
            raise CommandError("--workers must be at least 1")
        open_files.raise_limit()
        try:
            listener = self._listener(fd)
        except ServiceError as error:
            raise CommandError(str(error)) from error
        with listener:
            logger.info("serving on port %d", port_of(listener))
            if fd is not None and settings.EMBEDDED_POSTGRES:
                _settle_orphans()
            if not _serve(_configuration(workers), listener):
                sys.exit(1)

    def _listener(self, fd: int | None) -> socket.socket:
        if fd is not None:
            return socket.socket(fileno=fd)
        return listening_socket(settings.TITO.bind, settings.TITO.port)


def _settle_orphans() -> None:
    """Under `up` the server before this one has ended, and nobody else answers requests of its database.

    Marked lost at once, they free their keys: a client that repeats its request need not wait for them.
    """
    try:
        settle_dangling(conninfo(), 0)
    except (TitoError, psycopg.Error) as error:
        logger.warning("requests of the server before are settled later: %s", error)


def _configuration(workers: int) -> uvicorn.Config:
    """Replies of engines pass through with their own headers, so the server adds none."""
    return uvicorn.Config(
        "tito_project.asgi:application",
        workers=workers,
        loop="uvloop",
        http="tito_project.patience:ImpatientProtocol",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_LAST_BYTES_S,
        timeout_worker_healthcheck=_HANG_S,
    )


def _serve(config: uvicorn.Config, listener: socket.socket) -> bool:
    """False if the application did not come up."""
    if config.workers == 1:
        server = uvicorn.Server(config)
        server.run(sockets=[listener])
        return server.started
    parent = Multiprocess(config, sockets=[listener])
    parent.run()
    return not any(process.exitcode == STARTUP_FAILURE for process in parent.processes)
