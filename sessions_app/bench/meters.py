"""What processes and tables cost, read from the outside: the system's counters and Postgres's own sizes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Spent:
    """CPU seconds so far."""

    web: float
    postgres: float | None
    """None where the database's processes are not ours to see."""

    def since(self, before: "Spent") -> "Spent":
        """What was spent between two readings."""
        both = self.postgres is not None and before.postgres is not None
        return Spent(self.web - before.web, self.postgres - before.postgres if both else None)  # type: ignore[operator]


def spent(web: Sequence[psutil.Process], postmaster: psutil.Process | None) -> Spent:
    """CPU of the web processes, and of a Postgres server with all its backends, dead ones included."""
    return Spent(sum(map(_own, web)), None if postmaster is None else _with_children(postmaster))


def _own(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def _with_children(parent: psutil.Process) -> float:
    times = parent.cpu_times()
    total = _own(parent) + times.children_user + times.children_system
    for child in parent.children():
        try:
            total += _own(child)
        except psutil.NoSuchProcess:
            continue
    return total


def rss_mb(processes: Sequence[psutil.Process]) -> float:
    """Resident memory now."""
    return sum(process.memory_info().rss for process in processes) / _MIB


def peak_rss_mb(processes: Sequence[psutil.Process]) -> float:
    """The most resident memory so far, where the system remembers it; else what it is now."""
    return sum(map(_peak, processes)) / _MIB


def _peak(process: psutil.Process) -> int:
    try:
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        status = ""
    told = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(told[1]) * 1024 if told else process.memory_info().rss


def threads(processes: Sequence[psutil.Process]) -> int:
    """The most threads that one of them has."""
    return max(process.num_threads() for process in processes)


class Tables:
    """The sizes of our tables."""

    def __init__(self, database_url: str) -> None:
        self._url = database_url

    def connections(self) -> int:
        """Connections of the web processes' hot path."""
        return self._number("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tito'")

    def bytes_on_disk(self) -> int:
        """Tables, indexes and TOAST of the forest, dead rows given back first."""
        with psycopg.connect(self._url, autocommit=True) as connection:
            names = [row[0] for row in connection.execute(_TABLES).fetchall()]
            for name in names:
                connection.execute(f"VACUUM (FULL, ANALYZE) {name}")
            sizes = connection.execute(_SIZES).fetchone()
        return int(sizes[0]) if sizes else 0

    def bytes_of_session(self, session_id: str) -> dict[str, int]:
        """Bytes of one session's rows by table, compression included, indexes left out."""
        with psycopg.connect(self._url, autocommit=True) as connection:
            return {
                name: _one(connection, f"{_ROW_BYTES} FROM {name} AS t WHERE {column} = %s", session_id)
                for name, column in _BY_SESSION.items()
            }

    def _number(self, query: str) -> int:
        with psycopg.connect(self._url, autocommit=True) as connection:
            return _one(connection, query)


def _one(connection: psycopg.Connection[Any], query: str, *values: str) -> int:
    row = connection.execute(query, values).fetchone()
    return int(row[0] or 0) if row else 0


_ROW_BYTES = "SELECT sum(pg_column_size(t.*))"
_TABLES = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'sessions\\_app\\_%'"
_SIZES = (
    "SELECT sum(pg_total_relation_size(oid)) FROM pg_class "
    "WHERE relkind = 'r' AND relname LIKE 'sessions\\_app\\_%'"
)
_BY_SESSION = {
    "sessions_app_session": "id",
    "sessions_app_node": "session_id",
    "sessions_app_message": "session_id",
    "sessions_app_tokencheckpoint": "session_id",
    "sessions_app_record": "session_id",
    "sessions_app_requesthead": "session_id",
    "sessions_app_historyevent": "session_id",
}
