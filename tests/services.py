"""Real Postgres and Valkey for a whole test run, in a home of its own that is gone afterwards.

Started by tests/conftest.py before Django reads its settings. With DATABASE_URL or REDIS_URL set, that one is
used instead. Invariant: no TITO_ variable of the caller reaches the tests, and a run that was killed leaves
nothing behind for longer than until the next one.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import psutil

from tito_project.embedded.census import pid_in
from tito_project.embedded.child import Child
from tito_project.embedded.home import prepare_home
from tito_project.embedded.places import Places, places_of
from tito_project.embedded.postgres import ROLE, EmbeddedPostgres
from tito_project.embedded.valkey import EmbeddedValkey

_PREFIX = "tito-tests-"
_OWNER = "owner.pid"
_FOREIGN = ("DEBUG", "ALLOWED_HOSTS", "SECRET_KEY", "CSRF_TRUSTED_ORIGINS")
_running: list[Child] = []


def start() -> None:
    """Sets the environment and starts what it does not name."""
    _sweep()
    _clear_environment()
    home = Path(tempfile.mkdtemp(prefix=_PREFIX))
    (home / _OWNER).write_text(str(os.getpid()), encoding="ascii")
    os.environ["TITO_HOME"] = str(home)
    places = places_of(home)
    atexit.register(_stop, places)
    prepare_home(places)
    if not os.environ.get("DATABASE_URL"):
        _start_postgres(places)
    if not os.environ.get("REDIS_URL"):
        _running.append(EmbeddedValkey(places).start())


def _start_postgres(places: Places) -> None:
    """The role may create databases here, as pytest-django makes one for the run, and roles, as docs say."""
    postgres = EmbeddedPostgres(places, durable=False)
    _running.append(postgres.start())
    with postgres.superuser_connection() as connection:
        connection.execute(f"ALTER ROLE {ROLE} CREATEDB CREATEROLE")


def _stop(places: Places) -> None:
    while _running:
        _running.pop().stop()
    _remove(places)


def _remove(places: Places) -> None:
    """The home, and what of it had to lie elsewhere."""
    for folder in (places.data, places.sockets, places.home):
        shutil.rmtree(folder, ignore_errors=True)


def _clear_environment() -> None:
    for name in list(os.environ):
        if name.startswith("TITO_") or name in _FOREIGN:
            del os.environ[name]


def _sweep() -> None:
    """Stops the servers of runs that were killed, and removes their homes."""
    for home in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        owner = pid_in(home / _OWNER) if os.access(home, os.W_OK) else None
        if owner is None or psutil.pid_exists(owner):
            continue
        places = places_of(home)
        EmbeddedValkey(places).stop_orphan()
        EmbeddedPostgres(places).stop_orphan()
        _remove(places)
