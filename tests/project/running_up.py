"""Runs `manage.py up` as a program of its own and looks at what it leaves."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import psycopg

from tito_project.embedded.places import places_of

MANAGE = Path(__file__).resolve().parents[2] / "manage.py"
_LIMIT_S = 90.0
_SERVICES = ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "DJANGO_SETTINGS_MODULE")


def clean_environment(**variables: str) -> dict[str, str]:
    """As a user's shell has it, plus what is given."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("TITO_") and name not in _SERVICES
    }
    return {**kept, **variables}


def manage(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command that ends by itself."""
    command = [sys.executable, str(MANAGE), *arguments]
    environment = clean_environment(**variables)
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=_LIMIT_S
    )


@dataclass
class Up:
    """One `up` with its home in `folder`/.tito."""

    folder: Path
    options: tuple[str, ...] = ("--port", "0", "--workers", "1")
    python: tuple[str, ...] = (sys.executable,)
    environment: Mapping[str, str] = field(default_factory=clean_environment)
    credentials: Mapping[str, Any] = field(default_factory=dict)

    def __enter__(self) -> "Up":
        self.screen = self.folder / "screen.txt"
        with self.screen.open("wb") as output:
            self.process = subprocess.Popen(
                [*self.python, str(MANAGE), "up", *self.options],
                cwd=self.folder,
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **self.credentials,
            )
        self.begun = time.monotonic()
        return self

    def __exit__(self, *error: object) -> None:
        self.kill_children()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def kill_children(self) -> None:
        """All that are there; some may end by themselves meanwhile."""
        for found in self.alive():
            with contextlib.suppress(psutil.NoSuchProcess):
                found.kill()

    @property
    def home(self) -> Path:
        """The default one."""
        return self.folder / ".tito"

    def text(self) -> str:
        """What is on the screen."""
        return self.screen.read_text()

    def wait_for(self, words: str) -> None:
        """Returns when the words are on the screen."""
        while words not in self.text():
            assert self.process.poll() is None, self.text()
            assert time.monotonic() < self.begun + _LIMIT_S, self.text()
            time.sleep(0.05)

    def ready(self) -> "Up":
        """Returns when everything answers."""
        self.wait_for("Ctrl-C stops everything.")
        self.seconds = time.monotonic() - self.begun
        return self

    def base(self) -> str:
        """The printed base URL."""
        return re.findall(r"Base URL +(\S+)", self.text())[0]

    def snippet(self) -> str:
        """The printed program."""
        return self.text().split("pip install openai):")[1].split("Ctrl-C")[0]

    def healthy(self) -> bool:
        """True if `/health` answers."""
        with urllib.request.urlopen(f"{self.base()}/health", timeout=30) as reply:
            return bool(reply.status == 200)

    def end(self, number: signal.Signals) -> int:
        """Sends the signal to `up` alone and waits for its end."""
        self.process.send_signal(number)
        return self.process.wait(timeout=60)

    def alive(self) -> list[psutil.Process]:
        """Every program of this home, `up` itself left out."""
        return [found for found in psutil.process_iter() if found.pid != os.getpid() and self._is_ours(found)]

    def child(self, name: str) -> psutil.Process:
        """The child whose command line holds the word."""
        return next(found for found in self.alive() if name in found.cmdline())

    def admin_hash(self) -> str:
        """The stored password of the operator's account."""
        sockets = str(places_of(self.home).sockets)
        with psycopg.connect(host=sockets, port=5432, user="tito", dbname="tito") as connection:
            row = connection.execute("SELECT password FROM auth_user WHERE username = 'admin'").fetchone()
        assert row is not None
        return str(row[0])

    def _is_ours(self, found: psutil.Process) -> bool:
        home = str(self.home)
        try:
            if found.status() == psutil.STATUS_ZOMBIE or found.pid == self.process.pid:
                return False
            mentions = any(home in argument for argument in found.cmdline())
            return mentions or found.environ().get("TITO_HOME") == home or found.cwd().startswith(home)
        except psutil.Error:
            return False
