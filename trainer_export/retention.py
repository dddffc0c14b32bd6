"""What is old and was handed to training goes; what was not stays, unless somebody says so.

Text can go earlier than tokens: then messages, replies and differences are emptied, and the session can still
be exported. What an unfinished export or an open handout needs is never touched; an open session only where
somebody discards it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any
from uuid import UUID

import psycopg
from django.db.models import CASCADE
from psycopg import sql

from sessions_app.models import Session
from trainer_export.jobs.filters import IS_EXPORTED
from trainer_export.purging import HAS_TEXT, IN_USE, forget_replays, purge, purge_waiting

_BATCH = 200

_OLD = f"""
    s.status <> 'open' AND s.finished_at < now() - %(days)s::float8 * interval '1 day' AND NOT {IN_USE}
"""
_HANDED = f"(s.next_seq = 0 OR {IS_EXPORTED})"
_PLAN = f"""
    SELECT count(*) FILTER (WHERE {{goes}}), coalesce(sum(tokens) FILTER (WHERE {{goes}}), 0),
        count(*) FILTER (WHERE NOT ({{goes}})), coalesce(sum(tokens) FILTER (WHERE NOT ({{goes}})), 0)
    FROM (SELECT s.*, s.added_tokens + s.generated_tokens AS tokens FROM sessions_app_session s
          WHERE {_OLD} AND {{kind}}) s
"""
_FREE = f"SELECT s.id FROM sessions_app_session s WHERE s.id = %s AND NOT {IN_USE} FOR UPDATE OF s"
_NEXT = f"""
    SELECT s.id FROM sessions_app_session s WHERE {_OLD} AND {{kind}} AND {{goes}}
    ORDER BY s.finished_at LIMIT {_BATCH} FOR UPDATE OF s SKIP LOCKED
"""


@dataclass(frozen=True, slots=True)
class Retention:
    """What is to go."""

    days: float
    """Sessions that ended earlier."""
    unexported: bool = False
    """Also what was never handed to training."""
    text_only: bool = False
    """Only text; tokens stay."""

    @property
    def _parts(self) -> dict[str, str]:
        return {
            "goes": "true" if self.unexported else _HANDED,
            "kind": HAS_TEXT if self.text_only else "true",
        }

    def query(self, template: str) -> str:
        """A statement with this retention's conditions."""
        return template.format(**self._parts)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What went, or would go."""

    sessions: int
    tokens: int
    kept_sessions: int
    """Old enough, but never handed to training as they stand."""
    kept_tokens: int
    text_only: bool
    dry_run: bool

    def as_json(self) -> dict[str, Any]:
        """For the command."""
        return asdict(self)


def plan(conninfo: str, retention: Retention) -> Outcome:
    """What would go now."""
    with psycopg.connect(conninfo) as connection:
        row = connection.execute(retention.query(_PLAN), {"days": retention.days}).fetchone()
    assert row is not None
    return Outcome(row[0], int(row[1]), row[2], int(row[3]), retention.text_only, dry_run=True)


def apply(conninfo: str, retention: Retention) -> Outcome:
    """Let it go, batch by batch; each batch is gone in whole or not at all."""
    planned = plan(conninfo, retention)
    gone = 0
    for count in _batches(conninfo, retention):
        gone += count
    return replace(planned, sessions=gone, dry_run=False)


def discard(conninfo: str, session_id: UUID) -> bool:
    """Remove one session now, open or not. False where an unfinished export or an open handout needs it."""
    with psycopg.connect(conninfo) as connection:
        found = connection.execute(_FREE, (session_id,)).fetchall()
        if found:
            _remove(connection, [session_id])
    return bool(found)


def _batches(conninfo: str, retention: Retention) -> Iterator[int]:
    step = _purge if retention.text_only else _remove
    while True:
        with psycopg.connect(conninfo) as connection:
            rows = connection.execute(retention.query(_NEXT), {"days": retention.days}).fetchall()
            if rows:
                step(connection, [row[0] for row in rows])
        yield len(rows)
        if len(rows) < _BATCH:
            return


def _remove(connection: psycopg.Connection[Any], ids: Sequence[UUID]) -> None:
    """Every row that belongs to these sessions, in whatever table. Foreign keys are checked at the end."""
    purge_waiting(connection.cursor(), ids)
    for table, column in _owned():
        statement = sql.SQL("DELETE FROM {} WHERE {} = ANY(%s)")
        connection.execute(statement.format(sql.Identifier(table), sql.Identifier(column)), (list(ids),))
    connection.execute("DELETE FROM sessions_app_session WHERE id = ANY(%s)", (list(ids),))
    forget_replays(connection.cursor(), ids)


def _owned() -> list[tuple[str, str]]:
    """Tables with a foreign key to sessions that goes with them, and its column."""
    return [
        (relation.related_model._meta.db_table, str(relation.field.column))
        for relation in Session._meta.related_objects
        if relation.on_delete is CASCADE
    ]


def _purge(connection: psycopg.Connection[Any], ids: Sequence[UUID]) -> None:
    purge(connection.cursor(), ids)
