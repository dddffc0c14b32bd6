"""One local engine for all server processes of a home: who starts it, where it listens, when it ends.

Invariant: locks are held by processes, not by files' contents, so a `kill -9` of anything leaves nothing
stale. The engine ends by itself when the last server process is gone.
"""

import fcntl
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from sessions_app.errors import NotReady

_ROOT = Path(__file__).resolve().parents[3]
_LISTENS_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True)
class EngineFiles:
    """Files in a home folder."""

    home: Path

    @property
    def users(self) -> Path:
        """Locked shared by every server process that uses the engine."""
        return self.home / "local-engine.users"

    @property
    def starting(self) -> Path:
        """Locked by the process that starts the engine."""
        return self.home / "local-engine.starting"

    @property
    def address(self) -> Path:
        """JSON: port, process id and model of the running engine."""
        return self.home / "local-engine.json"

    @property
    def log(self) -> Path:
        """What the engine prints."""
        return self.home / "local-engine.log"

    def in_use(self) -> bool:
        """Whether any process holds the users' lock."""
        with self.users.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False

    def write_address(self, port: int, model: str) -> None:
        """Atomically, by the engine once it listens."""
        draft = self.address.with_suffix(".new")
        draft.write_text(json.dumps({"port": port, "pid": os.getpid(), "model": model}), encoding="utf-8")
        draft.replace(self.address)

    def url(self, model: str) -> str | None:
        """Where the engine of this model listens, if the address file names one that answers."""
        try:
            address = json.loads(self.address.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        url = f"http://127.0.0.1:{address['port']}"
        return url if address["model"] == model and _answers(url) else None


class SharedEngine:
    """A server process's hold on the engine."""

    def __init__(self, home: Path, model: str) -> None:
        self._files = EngineFiles(home)
        self._model = model
        self._use: IO[str] | None = None

    def ensure(self) -> str:
        """The base URL of a listening engine; starts one if there is none. Blocks: call it in a thread."""
        self._files.home.mkdir(parents=True, exist_ok=True)
        if self._use is None:
            self._use = self._files.users.open("a")
            fcntl.flock(self._use, fcntl.LOCK_SH)
        with _locked(self._files.starting):
            return self._files.url(self._model) or self._start()

    def release(self) -> None:
        """This process needs it no more; idempotent."""
        use, self._use = self._use, None
        if use is not None:
            use.close()

    def _start(self) -> str:
        self._files.address.unlink(missing_ok=True)
        command = [sys.executable, "-m", "sessions_app.backends.local"]
        command += ["--model", self._model, "--home", str(self._files.home)]
        with self._files.log.open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd=_ROOT,
                env={**os.environ, "TQDM_DISABLE": "1"},  # a log is no place for progress bars
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + _LISTENS_WITHIN_S
        while time.monotonic() < deadline and process.poll() is None:
            if url := self._files.url(self._model):
                return url
            time.sleep(0.05)
        raise NotReady(f"the local engine did not start; see {self._files.log.name} in TITO_HOME")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _answers(url: str) -> bool:
    try:
        urllib.request.urlopen(f"{url}/health", timeout=5).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True
