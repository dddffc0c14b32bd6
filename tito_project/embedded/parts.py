"""The programs an `up` consists of besides the services: web server, worker, demo engine."""

import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tito_project.embedded.child import Child, Ladder, Launch
from tito_project.embedded.places import Places
from tito_project.embedded.supervisor import Pause

_MANAGE = Path(__file__).resolve().parents[2] / "manage.py"
_WORKER_LIMIT_S = 20.0
_ENGINE_LIMIT_S = 5.0
_BEYOND_DRAIN_S = 10.0


def default_workers() -> int:
    """Web processes: half the processors, 1 to 4; the rest is for the database and the engine."""
    return max(1, min(4, (os.cpu_count() or 1) // 2))


@dataclass(frozen=True, slots=True)
class Program:
    """One of our own commands as a child."""

    launch: Launch

    @property
    def name(self) -> str:
        """Name of the child and of its log."""
        return self.launch.name

    def start(self, pause: Pause) -> Child:
        """Starts it and does not wait."""
        return self.launch.start()


@dataclass(frozen=True, slots=True)
class Parts:
    """Builds the programs of one `up`."""

    places: Places
    environment: Mapping[str, str]
    """The settings in force, as the children shall read them."""

    def web(self, listener: int, workers: int, drain_s: float) -> Program:
        """The server, on a socket bound by `up`: connections wait in it while the server is restarted."""
        options = ["--fd", str(listener), "--workers", str(workers)]
        ladder = ((signal.SIGTERM, drain_s + _BEYOND_DRAIN_S),)
        return self._program("web", ["serve", *options], ladder, inherited=(listener,))

    def worker(self) -> Program:
        """One Celery worker, with the periodic tasks."""
        return self._program("worker", ["worker", "--beat"], ((signal.SIGTERM, _WORKER_LIMIT_S),))

    def demo_engine(self, port: int) -> Program:
        """The engine that plays a model."""
        options = ["demo_engine", "--port", str(port)]
        return self._program("engine", options, ((signal.SIGTERM, _ENGINE_LIMIT_S),))

    def _program(
        self, name: str, arguments: list[str], ladder: Ladder, inherited: tuple[int, ...] = ()
    ) -> Program:
        command = [sys.executable, str(_MANAGE), *arguments]
        log = self.places.logs / f"{name}.log"
        return Program(Launch(name, command, self.environment, log, ladder, inherited=inherited))
