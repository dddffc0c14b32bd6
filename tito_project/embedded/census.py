"""Questions to the system's table of running programs.

Invariant: a pid alone proves nothing. A zombie counts as gone, and a reused pid is told apart by its start
time, or by its name and command line.
"""

import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

_CLOCK_SLACK_S = 0.05
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Identity:
    """A pid that leads its own session, and when it started (seconds since the epoch)."""

    pid: int
    started: float


def identity_of(pid: int) -> Identity:
    """The identity of a running child of ours."""
    try:
        return Identity(pid, psutil.Process(pid).create_time())
    except psutil.NoSuchProcess:
        return Identity(pid, time.time())


def named(pid: int, name: str, argument: str) -> psutil.Process | None:
    """The running program with this pid, if its name starts so and its command line holds the argument."""
    try:
        found = psutil.Process(pid)
        if found.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            return None
        return found if found.name().startswith(name) and argument in found.cmdline() else None
    except psutil.Error:
        return None


def works_in(found: psutil.Process, name: str, folder: Path) -> bool:
    """True if the program's name starts so and the folder is its working folder."""
    try:
        return found.name().startswith(name) and found.cwd() == str(folder)
    except psutil.Error:
        return False


def pid_in(file: Path) -> int | None:
    """The pid on the first line of a pid file."""
    try:
        return int(file.read_text(encoding="ascii", errors="replace").split()[0])
    except (OSError, ValueError, IndexError):
        return None


def session_members(leader: Identity) -> list[psutil.Process]:
    """Everything alive in the session that `leader` began, the leader first; empty if its pid was reused."""
    members = [found for found in psutil.process_iter() if _session_of(found.pid) == leader.pid]
    living = [found for found in members if _running_since(found, leader.started)]
    if any(found.pid == leader.pid and not _is(found, leader) for found in members):
        return []
    return sorted(living, key=lambda found: found.pid != leader.pid)


def send(members: Iterable[psutil.Process], number: signal.Signals) -> None:
    """Signals each that is still there."""
    for found in members:
        try:
            found.send_signal(number)
        except psutil.NoSuchProcess:
            continue


def all_gone(members: Iterable[psutil.Process], limit: float) -> bool:
    """Waits up to `limit` seconds for programs that are not our children."""
    deadline = time.monotonic() + limit
    waiting = list(members)
    while waiting := [found for found in waiting if _alive(found)]:
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _alive(found: psutil.Process) -> bool:
    try:
        return found.is_running() and found.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False


def _is(found: psutil.Process, leader: Identity) -> bool:
    try:
        return abs(found.create_time() - leader.started) <= _CLOCK_SLACK_S
    except psutil.NoSuchProcess:
        return True


def _running_since(found: psutil.Process, started: float) -> bool:
    try:
        return _alive(found) and found.create_time() >= started - _CLOCK_SLACK_S
    except psutil.NoSuchProcess:
        return False
