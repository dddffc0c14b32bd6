"""The supervisor: order, signals, restarts that say so."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.project.test_child import IGNORES_TERM, SLEEPS, start, wait_for_output
from tito_project.embedded.child import Child
from tito_project.embedded.errors import ServiceError
from tito_project.embedded.ledger import Ledger
from tito_project.embedded.supervisor import Pause, StopRequested, Supervisor


@dataclass
class Recorded:
    """A service that notes its starts."""

    name: str
    folder: Path
    code: str = SLEEPS
    started: list[Child] = field(default_factory=list)

    def start(self, pause: Pause) -> Child:
        """Starts a small program under this service's name."""
        child = start(self.folder, self.code)
        child.name = self.name
        self.started.append(child)
        return child


@dataclass
class Stage:
    """A supervisor and what it said."""

    supervisor: Supervisor
    ledger: Ledger
    said: list[str]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Signals are as before afterwards, and no child is left."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    said: list[str] = []
    ledger = Ledger(tmp_path / "up.json")
    supervisor = Supervisor(ledger, said.append)
    supervisor.listen_to_signals()
    yield Stage(supervisor, ledger, said)
    supervisor.stop()
    for number, handler in before.items():
        signal.signal(number, handler)


def after(seconds: float, act: Callable[[], object]) -> None:
    """Does something while the supervisor watches."""
    threading.Timer(seconds, act).start()


def signal_myself(number: signal.Signals = signal.SIGTERM) -> None:
    """What a terminal or a service manager does."""
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_watch(stage: Stage, number: signal.Signals) -> None:
    after(0.1, lambda: signal_myself(number))
    with pytest.raises(StopRequested):
        stage.supervisor.watch()


def test_a_signal_during_the_start_stops_before_the_next_child(stage: Stage, tmp_path: Path) -> None:
    service = Recorded("late", tmp_path)
    signal_myself()
    with pytest.raises(StopRequested):
        stage.supervisor.start(service)
    assert service.started == []


def test_the_last_started_is_stopped_first(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[str] = []
    stop = Child.stop

    def noted(child: Child, hurry: Callable[[], bool]) -> None:
        stopped.append(child.name)
        stop(child, hurry)

    monkeypatch.setattr(Child, "stop", noted)
    for name in ("database", "web", "worker"):
        stage.supervisor.start(Recorded(name, tmp_path))
    stage.supervisor.stop()
    assert stopped == ["worker", "web", "database"]
    assert stage.ledger.children == {}


def test_a_killed_child_is_restarted_with_a_line_that_says_so(stage: Stage, tmp_path: Path) -> None:
    service = Recorded("web", tmp_path)
    stage.supervisor.start(Recorded("database", tmp_path))
    child = stage.supervisor.start(service)
    stage.supervisor.start(Recorded("worker", tmp_path))
    child.process.kill()
    after(1.0, signal_myself)
    with pytest.raises(StopRequested):
        stage.supervisor.watch()
    assert len(service.started) == 2
    assert service.started[1].exit_status() is None
    assert any("web ended (killed by SIGKILL): restarting" in line for line in stage.said)
    assert list(stage.ledger.children) == ["database", "web", "worker"]


def test_one_that_keeps_ending_ends_the_whole(stage: Stage, tmp_path: Path) -> None:
    service = Recorded("web", tmp_path, code="print('out of luck'); raise SystemExit(7)")
    stage.supervisor.start(service)
    with pytest.raises(ServiceError, match=r"exit status 7[\s\S]*out of luck"):
        stage.supervisor.watch()
    assert len(service.started) == 4


def test_a_second_signal_hurries(stage: Stage, tmp_path: Path) -> None:
    wait_for_output(stage.supervisor.start(Recorded("stubborn", tmp_path, IGNORES_TERM + SLEEPS)))
    signal_myself()
    after(0.3, signal_myself)
    stage.supervisor.stop()
    assert stage.ledger.children == {}
