"""A program started by us: in a session of its own, its output in a log, stopped by a ladder of signals.

Invariant: after `stop` nothing of its session is alive.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tito_project.embedded.census import Identity, all_gone, identity_of, send, session_members
from tito_project.embedded.errors import with_log_tail

_POLL_S = 0.02
_LOG_LIMIT = 16 * 1024 * 1024

Ladder = tuple[tuple[signal.Signals, float], ...]
"""Signals to the leader, each with the seconds to wait for its end. What then remains is killed."""


def _never() -> bool:
    return False


@dataclass(slots=True)
class Child:
    """A running program and how to stop it."""

    name: str
    process: subprocess.Popen[bytes]
    identity: Identity
    log: Path
    log_offset: int
    """Where the output of this run begins in the log."""
    ladder: Ladder

    def exit_status(self) -> str | None:
        """How it ended, in words; None while it runs."""
        code = self.process.poll()
        if code is None:
            return None
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"

    def wait_ready(self, ready: Callable[[], bool], limit: float, pause: Callable[[float], None]) -> None:
        """Returns when `ready()`; raises ServiceError if the program ends or `limit` seconds pass before."""
        deadline = time.monotonic() + limit
        while not ready():
            if ended := self.exit_status():
                raise with_log_tail(f"{self.name} did not start ({ended})", self.log, self.log_offset)
            if time.monotonic() > deadline:
                raise with_log_tail(f"{self.name} is not ready after {limit:g} s", self.log, self.log_offset)
            pause(_POLL_S)

    def stop(self, hurry: Callable[[], bool] = _never) -> None:
        """Down the ladder, or at once when `hurry()`; then kills what is left of the session."""
        for number, limit in self.ladder:
            if hurry() or self._ends_after(number, limit, hurry):
                break
        leftovers = session_members(self.identity)
        send(leftovers, signal.SIGKILL)
        self.process.wait()
        all_gone(leftovers, limit=5.0)

    def _ends_after(self, number: signal.Signals, limit: float, hurry: Callable[[], bool]) -> bool:
        if self.process.poll() is not None:
            return True
        self.process.send_signal(number)
        deadline = time.monotonic() + limit
        while self.process.poll() is None:
            if hurry() or time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        return True


@dataclass(frozen=True, slots=True)
class Launch:
    """Everything needed to start a child."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    ladder: Ladder
    folder: Path | None = None
    """Working folder; None = ours."""
    credentials: Mapping[str, Any] = field(default_factory=dict)
    """`user`, `group` and `extra_groups` of subprocess."""
    inherited: tuple[int, ...] = ()
    """File descriptors the child keeps, under the same numbers."""

    def start(self) -> Child:
        """Starts the program; a terminal's Ctrl-C does not reach it."""
        offset = _rotate(self.log)
        with self.log.open("ab") as output:
            process = subprocess.Popen(
                list(self.command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(self.environment),
                cwd=self.folder,
                start_new_session=True,
                pass_fds=self.inherited,
                **self.credentials,
            )
        return Child(self.name, process, identity_of(process.pid), self.log, offset, self.ladder)


def _rotate(log: Path) -> int:
    """Keeps one older log once it is large. Returns the size of the current one."""
    try:
        size = log.stat().st_size
    except FileNotFoundError:
        return 0
    if size < _LOG_LIMIT:
        return size
    os.replace(log, log.with_suffix(".log.1"))
    return 0
