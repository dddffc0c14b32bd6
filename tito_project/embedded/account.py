"""The operating-system account the embedded servers run as: ourselves, or `nobody` when we are root.

PostgreSQL refuses to run as root. No account is created and no folder of others is opened up for it.
"""

import os
import pwd
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_UNPRIVILEGED = "nobody"


@dataclass(frozen=True, slots=True)
class ServerAccount:
    """A uid and gid, and whether we have to switch to them."""

    uid: int
    gid: int
    switched: bool
    """True when we are root and the servers run as somebody else."""

    def credentials(self) -> dict[str, Any]:
        """Keyword arguments for subprocess."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if self.switched else {}

    def own(self, path: Path) -> None:
        """Gives a path to the account."""
        if self.switched:
            os.chown(path, self.uid, self.gid)

    def reaches(self, folder: Path) -> bool:
        """True if the account may enter the folder and all above it. Missing ones will be made to fit."""
        if not self.switched:
            return True
        return all(self._may_enter(each) for each in (folder, *folder.parents) if each.exists())

    def _may_enter(self, folder: Path) -> bool:
        status = folder.stat()
        if status.st_uid == self.uid:
            return bool(status.st_mode & 0o100)
        if status.st_gid == self.gid:
            return bool(status.st_mode & 0o010)
        return bool(status.st_mode & 0o001)


def server_account() -> ServerAccount:
    """Ourselves, or the unprivileged account when we are root."""
    if os.geteuid() != 0:
        return ServerAccount(os.geteuid(), os.getegid(), switched=False)
    entry = pwd.getpwnam(_UNPRIVILEGED)
    return ServerAccount(entry.pw_uid, entry.pw_gid, switched=True)
