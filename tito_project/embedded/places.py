"""Where the embedded services keep their things, computed from TITO_HOME alone; nothing is created here.

Invariant: every process with the same TITO_HOME computes the same socket paths.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from tito_project.embedded.account import ServerAccount, server_account

POSTGRES_PORT = 5432
_SOCKET_PATH_LIMIT = 100
"""Bytes; the kernel allows 107 on Linux and 103 on macOS."""


@dataclass(frozen=True, slots=True)
class Places:
    """Paths of one TITO_HOME."""

    home: Path
    account: ServerAccount
    sockets: Path
    """Private folder of the unix sockets; in /tmp when the home is too deep or closed to the account."""

    @property
    def data(self) -> Path:
        """Folder of the services' data: where `data_name` leads to."""
        return self.data_name.resolve()

    @property
    def data_name(self) -> Path:
        """The data's name in the home; a link to elsewhere when the account cannot reach the home."""
        return self.home / "data"

    @property
    def logs(self) -> Path:
        """One log per child."""
        return self.home / "logs"

    @property
    def postgres_socket(self) -> Path:
        """The socket file of the embedded Postgres."""
        return self.sockets / f".s.PGSQL.{POSTGRES_PORT}"

    @property
    def valkey_socket(self) -> Path:
        """The socket file of the embedded Valkey."""
        return self.sockets / "valkey.sock"


def places_of(home: Path) -> Places:
    """The places of a home, which need not exist yet."""
    home, account = home.resolve(), server_account()
    inside = home / "run"
    short = len(bytes(inside / f".s.PGSQL.{POSTGRES_PORT}")) <= _SOCKET_PATH_LIMIT
    if short and account.reaches(home.parent):
        return Places(home, account, inside)
    tag = hashlib.sha256(bytes(home)).hexdigest()[:12]
    return Places(home, account, Path("/tmp") / f"tito-{tag}")
