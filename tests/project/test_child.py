"""Children: ready or a clear error, and nothing of their session alive after a stop."""

import os
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

from tito_project.embedded.child import Child, Ladder, Launch
from tito_project.embedded.errors import ServiceError

IGNORES_TERM = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); "
SLEEPS = "import time; print('up', flush=True); time.sleep(60)"
WITH_GRANDCHILD = (
    "import subprocess, sys, time; "
    "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); "
    "print(p.pid, flush=True); time.sleep(60)"
)


def start(folder: Path, code: str, ladder: Ladder = ((signal.SIGTERM, 5.0),)) -> Child:
    """A Python program as a child."""
    log = folder / "child.log"
    return Launch("child", [sys.executable, "-c", code], dict(os.environ), log, ladder).start()


def wait_for_output(child: Child) -> str:
    """The first line it printed."""
    child.wait_ready(lambda: b"\n" in child.log.read_bytes(), 10.0, time.sleep)
    return child.log.read_text().splitlines()[0]


def test_a_program_that_ends_before_it_is_ready_shows_its_last_lines(tmp_path: Path) -> None:
    child = start(tmp_path, "print('no luck'); raise SystemExit(3)")
    with pytest.raises(ServiceError, match=r"child did not start \(exit status 3\)[\s\S]*no luck"):
        child.wait_ready(lambda: False, 10.0, time.sleep)


def test_only_lines_of_this_run_are_shown(tmp_path: Path) -> None:
    (tmp_path / "child.log").write_text("old story\n")
    child = start(tmp_path, "print('news')")
    with pytest.raises(ServiceError, match="news") as caught:
        child.wait_ready(lambda: False, 10.0, time.sleep)
    assert "old story" not in str(caught.value)


def test_a_program_that_is_never_ready_is_an_error(tmp_path: Path) -> None:
    child = start(tmp_path, SLEEPS)
    with pytest.raises(ServiceError, match="not ready"):
        child.wait_ready(lambda: False, 0.1, time.sleep)
    child.stop()
    assert child.exit_status() == "killed by SIGTERM"


def test_one_that_ignores_the_signal_is_killed_after_its_limit(tmp_path: Path) -> None:
    child = start(tmp_path, IGNORES_TERM + "time.sleep(60)", ((signal.SIGTERM, 0.2),))
    wait_for_output(child)
    child.stop()
    assert child.exit_status() == "killed by SIGKILL"


def test_a_hurry_does_not_wait_for_the_limit(tmp_path: Path) -> None:
    child = start(tmp_path, IGNORES_TERM + "time.sleep(60)", ((signal.SIGTERM, 60.0),))
    wait_for_output(child)
    begun = time.monotonic()
    child.stop(hurry=lambda: time.monotonic() - begun > 0.2)
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_grandchildren_go_too_even_if_the_child_is_gone_first(tmp_path: Path, number: signal.Signals) -> None:
    child = start(tmp_path, WITH_GRANDCHILD)
    grandchild = psutil.Process(int(wait_for_output(child)))
    child.process.send_signal(number)
    child.process.wait()
    child.stop()
    assert not grandchild.is_running() or grandchild.status() == psutil.STATUS_ZOMBIE


def test_a_large_log_makes_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tito_project.embedded.child._LOG_LIMIT", 10)
    (tmp_path / "child.log").write_text("more than ten bytes\n")
    child = start(tmp_path, "print('fresh')")
    child.process.wait()
    assert child.log.read_text() == "fresh\n"
    assert (tmp_path / "child.log.1").read_text() == "more than ten bytes\n"
