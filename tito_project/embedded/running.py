"""Commands that need the embedded services say so at once when nobody has started them."""

import socket
from collections.abc import Sequence
from pathlib import Path

from django.conf import settings

from tito_project.embedded.errors import ServiceError
from tito_project.embedded.places import places_of

_NEED_VALKEY = frozenset({"serve", "worker"})
_NEED_POSTGRES = _NEED_VALKEY | {
    *("migrate", "createsuperuser", "changepassword", "dbshell"),
    *("recover", "retention", "export_samples", "what_if", "session_dump", "session_load"),
}
_HELP = frozenset({"-h", "--help"})


def require_services(arguments: Sequence[str]) -> None:
    """Raises ServiceError if the command on this command line cannot work without `up`."""
    command = arguments[0] if arguments else ""
    if command not in _NEED_POSTGRES or _HELP & set(arguments):
        return
    places = places_of(settings.TITO.home)
    if settings.EMBEDDED_POSTGRES and not answers(places.postgres_socket):
        raise _not_running("database", "DATABASE_URL", places.home)
    if command in _NEED_VALKEY and settings.EMBEDDED_VALKEY and not answers(places.valkey_socket):
        raise _not_running("broker", "REDIS_URL", places.home)


def answers(path: Path) -> bool:
    """True if something listens on the unix socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(2.0)
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True


def _not_running(what: str, variable: str, home: Path) -> ServiceError:
    return ServiceError(
        f"the embedded {what} of {home} is not running: run `manage.py up` (it starts everything), "
        f"or set {variable}"
    )
