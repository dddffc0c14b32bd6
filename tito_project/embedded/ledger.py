"""Which children an `up` has started, on disk, so that the next one can stop those a killed one left behind.

Invariant: an entry is acted upon only if its pid still belongs to the program that was started under it.
"""

import json
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path

from tito_project.embedded.census import Identity, all_gone, send, session_members
from tito_project.embedded.child import Child
from tito_project.embedded.errors import ServiceError

_ORPHAN_LIMIT_S = 10.0


@dataclass(slots=True)
class Ledger:
    """The children of this `up`, in the order of their first start."""

    file: Path
    children: dict[str, Child] = field(default_factory=dict)
    """By name; a restarted child keeps its place."""

    def put(self, child: Child) -> None:
        """Remembers a child that was just started."""
        self.children[child.name] = child
        self._write()

    def remove(self, child: Child) -> None:
        """Forgets a child that was stopped."""
        del self.children[child.name]
        self._write()

    def stop_orphans(self) -> list[str]:
        """Stops what a dead `up` left, newest first; returns the names of what was still running."""
        found = [name for name, leader in reversed(self._read()) if _stop_session(name, leader)]
        self.file.unlink(missing_ok=True)
        return found

    def _write(self) -> None:
        rows = [
            {"name": child.name, "pid": child.identity.pid, "started": child.identity.started}
            for child in self.children.values()
        ]
        partial = self.file.with_suffix(".partial")
        partial.write_text(json.dumps(rows, indent=1), encoding="ascii")
        os.replace(partial, self.file)

    def _read(self) -> list[tuple[str, Identity]]:
        try:
            rows = json.loads(self.file.read_text(encoding="ascii"))
            return [(str(row["name"]), Identity(int(row["pid"]), float(row["started"]))) for row in rows]
        except (OSError, ValueError, KeyError, TypeError):
            return []


def _stop_session(name: str, leader: Identity) -> bool:
    """Asks the leader, then kills the session. False if nothing of it was alive."""
    members = session_members(leader)
    if not members:
        return False
    send(members[:1], signal.SIGINT if name == "postgres" else signal.SIGTERM)
    if not all_gone(members, _ORPHAN_LIMIT_S):
        members = session_members(leader)
        send(members, signal.SIGKILL)
        if not all_gone(members, limit=5.0):
            raise ServiceError(f"{name} (pid {leader.pid}) of an earlier `up` does not stop")
    return True
