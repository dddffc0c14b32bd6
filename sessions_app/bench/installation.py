"""A whole installation in a folder of its own: the database, a broker, the echo engine, web servers.

Invariant: no TITO_ setting of the caller reaches it, and however a benchmark ends, no process of it stays.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from tito_project.addresses import embedded_database_url, embedded_redis_url
from tito_project.embedded.child import Child, Launch
from tito_project.embedded.errors import ServiceError
from tito_project.embedded.home import prepare_home
from tito_project.embedded.listening import accepts, base_url, free_port, healthy, listening_socket, port_of
from tito_project.embedded.parts import Parts
from tito_project.embedded.places import Places, places_of
from tito_project.embedded.postgres import EmbeddedPostgres
from tito_project.embedded.valkey import EmbeddedValkey

_MANAGE = Path(__file__).resolve().parents[2] / "manage.py"
_BIND = "127.0.0.1"
_READY_S = 120.0
_DRAIN_S = 5.0
_OF_DJANGO = ("DEBUG", "ALLOWED_HOSTS", "SECRET_KEY", "CSRF_TRUSTED_ORIGINS")


@dataclass(frozen=True, slots=True)
class WebServer:
    """A running `manage.py serve`."""

    base: str
    child: Child

    @property
    def processes(self) -> list[psutil.Process]:
        """The web processes themselves: with several, the children of a parent that only watches them."""
        parent = psutil.Process(self.child.process.pid)
        children = [each for each in parent.children() if "resource_tracker" not in " ".join(each.cmdline())]
        return children or [parent]


@dataclass(frozen=True, slots=True)
class Installation:
    """Use `installed` to make one."""

    places: Places
    environment: dict[str, str]
    database_url: str
    engine_url: str
    postmaster: psutil.Process | None
    """None where the database is not ours: then its CPU cannot be told."""

    @contextmanager
    def web(self, workers: int = 1, **settings: str) -> Iterator[WebServer]:
        """A web server, until the block ends. `settings`: TITO_ variables of its own."""
        with listening_socket(_BIND, 0) as listener:
            environment = self.environment | settings
            child = Parts(self.places, environment).web(listener.fileno(), workers, _DRAIN_S).start(_no_pause)
            try:
                base = base_url(_BIND, port_of(listener))
                child.wait_ready(lambda: healthy(base, ["localhost", _BIND]), _READY_S, time.sleep)
                yield WebServer(base, child)
            finally:
                child.stop()


@contextmanager
def installed() -> Iterator[Installation]:
    """An installation with its tables made. DATABASE_URL and REDIS_URL are used where they are set."""
    home = Path(tempfile.mkdtemp(prefix="tito-bench-"))
    places = places_of(home)
    try:
        with ExitStack() as stack:
            prepare_home(places)
            yield _installation(places, stack)
    finally:
        for folder in (places.data, places.sockets, places.home):
            shutil.rmtree(folder, ignore_errors=True)


def _installation(places: Places, stack: ExitStack) -> Installation:
    environment, postmaster = _clean_environment(places), None
    if not os.environ.get("DATABASE_URL"):
        postgres = EmbeddedPostgres(places).start()
        stack.callback(postgres.stop)
        postmaster = psutil.Process(postgres.process.pid)
        environment["DATABASE_URL"] = embedded_database_url(places)
    if not os.environ.get("REDIS_URL"):
        stack.callback(EmbeddedValkey(places).start().stop)
        environment["REDIS_URL"] = embedded_redis_url(places)
    _migrate(environment)
    port = free_port()
    engine = _echo_engine(places, environment, port)
    stack.callback(engine.stop)
    engine.wait_ready(lambda: accepts(port), _READY_S, time.sleep)
    url = f"http://{_BIND}:{port}"
    environment |= {"TITO_BACKEND": "demo", "TITO_BACKEND_URL": url}
    return Installation(places, environment, environment["DATABASE_URL"], url, postmaster)


def _clean_environment(places: Places) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("TITO_") and name not in _OF_DJANGO
    }
    return kept | {"TITO_HOME": str(places.home), "PYTHONUNBUFFERED": "1"}


def _migrate(environment: dict[str, str]) -> None:
    command = [sys.executable, str(_MANAGE), "migrate", "--verbosity", "0"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ServiceError(f"the migrations failed:\n{done.stderr}")


def _echo_engine(places: Places, environment: dict[str, str], port: int) -> Child:
    command = [sys.executable, str(_MANAGE), "demo_engine", "--echo", "--port", str(port)]
    return Launch("engine", command, environment, places.logs / "engine.log", ()).start()


def _no_pause(seconds: float) -> None:
    """Programs do not wait when they start."""
