"""Web processes on the test database: for what only a real process can show, such as being killed."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlencode

from django.db import connection

from tests.client import Client

ROOT = Path(__file__).parent.parent.parent


def database_url() -> str:
    """The test database's address."""
    values = connection.settings_dict
    query = {"host": values["HOST"]} if values["HOST"].startswith("/") else {}
    where = "" if query else f"{values['HOST']}:{values['PORT'] or 5432}"
    login = quote(values["USER"]) + (f":{quote(values['PASSWORD'])}" if values["PASSWORD"] else "")
    return f"postgresql://{login}@{where}/{values['NAME']}" + (f"?{urlencode(query)}" if query else "")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class WebProcess:
    """One `manage.py serve`."""

    def __init__(self, environment: dict[str, str], open_files: int | None = None, workers: int = 1) -> None:
        """`open_files`: the limit that its shell would set. `workers`: behind one port."""
        self.port = free_port()
        self.client = Client(f"http://127.0.0.1:{self.port}")
        shell = ["sh", "-c", 'ulimit -Sn "$0" && exec "$@"', str(open_files)] if open_files else []
        self._process = subprocess.Popen(
            [
                *shell,
                sys.executable,
                "manage.py",
                "serve",
                "--port",
                str(self.port),
                "--workers",
                str(workers),
            ],
            cwd=ROOT,
            env={**os.environ, "DATABASE_URL": database_url(), **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def wait_ready(self, timeout_s: float = 40.0) -> None:
        """Until it answers."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                if self.client.call("GET", "/health").status == 200:
                    return
            except OSError:
                pass
            assert self._process.poll() is None, self._process.stderr.read().decode()
            assert time.monotonic() < deadline, "it did not start in time"
            time.sleep(0.1)

    def pause(self) -> None:
        """SIGSTOP: nothing it does goes any further."""
        os.killpg(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT: it goes on as if no time had passed."""
        os.killpg(self._process.pid, signal.SIGCONT)

    def kill(self) -> None:
        """kill -9 of the process and of everything it started."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(10)

    def stop(self) -> int:
        """SIGTERM; its exit status."""
        if self._process.poll() is None:
            self._process.terminate()
        return self._process.wait(20)


@contextmanager
def web_processes(count: int, environment: dict[str, str], workers: int = 1) -> Iterator[list[WebProcess]]:
    """Several web servers at once, of so many processes each."""
    processes = [WebProcess(environment, workers=workers) for _ in range(count)]
    try:
        for process in processes:
            process.wait_ready()
        yield processes
    finally:
        for process in processes:
            process.stop()
