"""The whole server inside the test process: real HTTP, real Postgres, any configuration."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn
from django.conf import settings
from django.db import connection

from tito_project.configuration import Configuration, read
from tito_project.env import Environment


@dataclass(frozen=True)
class Served:
    """What a process holds of a server; views ask for the latest one's."""

    configuration: Configuration
    runtime: Any
    base: Configuration
    """What was in force before any server."""


_KEPT = ("id", "name", "created_at", "updated_at")
_serving: list[Served] = []
"""Servers that run now; fixtures may end them in any order."""


@contextmanager
def running_server(environment: dict[str, str] | None = None) -> Iterator[str]:
    """Serve under an environment until the block ends; yields the base URL."""
    from sessions_app.api import runtime
    from tito_project.asgi import application
    from tito_project.patience import ImpatientProtocol

    base = _serving[0].base if _serving else settings.TITO
    settings.TITO = read(Environment({"TITO_HOME": str(base.home)} | (environment or {})))
    forget_stored_profile()
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(
            application,
            http=ImpatientProtocol,
            lifespan="on",
            log_level="warning",
            access_log=False,
            server_header=False,
        )
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    served: Served | None = None
    try:
        _wait_started(server, thread)
        served = Served(settings.TITO, runtime._current, base)
        _serving.append(served)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
        _serving[:] = [other for other in _serving if other is not served]
        last = _serving[-1] if _serving else Served(base, None, base)
        settings.TITO, runtime._current = last.configuration, last.runtime


def forget_stored_profile() -> None:
    """A server under test gets what its own environment says, not what an earlier one left in the database.

    In a thread, so that a test's open transaction neither hides the change nor holds the row.
    """
    reset = threading.Thread(target=_forget)
    reset.start()
    reset.join()


def _forget() -> None:
    from sessions_app.models import ModelProfile

    try:
        fresh = ModelProfile(name="default")
        names = [field.name for field in ModelProfile._meta.fields if field.name not in _KEPT]
        values = {name: getattr(fresh, name) for name in names}
        ModelProfile.objects.filter(name="default").update(**values)
    finally:
        connection.close()


def _wait_started(server: uvicorn.Server, thread: threading.Thread) -> None:
    deadline = time.monotonic() + 60
    while not server.started:
        if not thread.is_alive() or time.monotonic() > deadline:
            raise RuntimeError("the server under test did not start")
        time.sleep(0.01)
