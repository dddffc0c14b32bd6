"""Starts children in order, watches them, stops them in the opposite order.

Invariants: whatever ends the supervisor in a regular way ends every child; a child that ends by itself is
restarted with a line that says so, and one that keeps ending ends the whole.
"""

import signal
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from types import FrameType
from typing import Protocol

from tito_project.embedded.child import Child
from tito_project.embedded.errors import ServiceError, with_log_tail
from tito_project.embedded.ledger import Ledger

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_WATCH_S = 0.25
_RESTARTS, _RESTART_WINDOW_S = 3, 60.0

Pause = Callable[[float], None]


class StopRequested(Exception):
    """A signal asked for the end."""


class Service(Protocol):
    """Something that runs as one child."""

    @property
    def name(self) -> str:
        """Name of the child and of its log."""

    def start(self, pause: Pause) -> Child:
        """Starts the child; waits through `pause`, which may raise StopRequested."""


class Supervisor:
    """The children of one `up`."""

    def __init__(self, ledger: Ledger, announce: Callable[[str], None]) -> None:
        self._ledger = ledger
        self._announce = announce
        self._services: dict[str, Service] = {}
        self._ended: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=_RESTARTS))
        self._signals = 0
        self._wake = threading.Event()

    def listen_to_signals(self) -> None:
        """From now on SIGINT, SIGTERM and SIGHUP ask for the end; a second one hurries it."""
        for number in _STOP_SIGNALS:
            signal.signal(number, self._on_signal)

    def pause(self, seconds: float) -> None:
        """Sleeps; raises StopRequested as soon as a signal has come."""
        self._wake.wait(seconds)
        if self._signals:
            raise StopRequested

    def start(self, service: Service) -> Child:
        """Starts a service and remembers it."""
        self.pause(0)
        child = service.start(self.pause)
        self._services[child.name] = service
        self._ledger.put(child)
        return child

    def watch(self) -> None:
        """Returns never: raises StopRequested, or ServiceError when a child keeps ending."""
        while True:
            for child in list(self._ledger.children.values()):
                if status := child.exit_status():
                    self._restart(child, status)
            self.pause(_WATCH_S)

    def stop(self) -> None:
        """Stops every child, the last first."""
        for child in reversed(list(self._ledger.children.values())):
            child.stop(hurry=lambda: self._signals > 1)
            self._ledger.remove(child)

    def _restart(self, child: Child, status: str) -> None:
        ended = self._ended[child.name]
        if len(ended) == _RESTARTS and time.monotonic() - ended[0] < _RESTART_WINDOW_S:
            message = f"{child.name} ended again ({status}), {_RESTARTS} restarts did not help"
            raise with_log_tail(message, child.log, child.log_offset)
        ended.append(time.monotonic())
        self._announce(f"{child.name} ended ({status}): restarting it, see {child.log}")
        child.stop()
        try:
            self.start(self._services[child.name])
        except ServiceError as error:
            raise ServiceError(f"{child.name} ended ({status}) and cannot be restarted: {error}") from error

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1
        self._wake.set()
