"""What a killed `up` left behind is found, and nothing else is touched."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.project.test_child import SLEEPS, start
from tito_project.embedded.ledger import Ledger


def test_orphans_are_stopped_by_the_next_up(tmp_path: Path) -> None:
    child = start(tmp_path, SLEEPS)
    Ledger(tmp_path / "up.json").put(child)
    assert Ledger(tmp_path / "up.json").stop_orphans() == ["child"]
    assert child.process.wait(timeout=5) is not None
    assert Ledger(tmp_path / "up.json").stop_orphans() == []


def test_what_was_stopped_in_order_is_no_orphan(tmp_path: Path) -> None:
    child = start(tmp_path, SLEEPS)
    ledger = Ledger(tmp_path / "up.json")
    ledger.put(child)
    child.stop()
    ledger.remove(child)
    assert Ledger(tmp_path / "up.json").stop_orphans() == []


def test_a_reused_pid_is_left_alone(tmp_path: Path) -> None:
    stranger = subprocess.Popen([sys.executable, "-c", SLEEPS], start_new_session=True)
    try:
        rows = [{"name": "web", "pid": stranger.pid, "started": time.time() - 3600}]
        (tmp_path / "up.json").write_text(json.dumps(rows))
        assert Ledger(tmp_path / "up.json").stop_orphans() == []
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize("text", ["", "{", "[1]", '[{"name": "web"}]', "null"])
def test_a_damaged_ledger_stops_nothing_and_nobody(tmp_path: Path, text: str) -> None:
    (tmp_path / "up.json").write_text(text)
    assert Ledger(tmp_path / "up.json").stop_orphans() == []
