"""A session out of the database into a dump."""

import asyncio
import base64
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sessions_app.errors import SessionNotFound
from sessions_app.json_text import dumps
from sessions_app.store.pool import Database, Row, Transaction
from trainer_export.dumps.tables import SCHEMA, SESSION, TABLES, Table
from trainer_export.spans.waiting import settle_session

_COLUMNS = """
    SELECT attname FROM pg_attribute
    WHERE attrelid = %s::text::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
_PROFILE = """
    SELECT p.name FROM sessions_app_session s JOIN sessions_app_modelprofile p ON p.id = s.profile_id
    WHERE s.id = %s
"""


async def dump(db: Database, session_id: UUID) -> bytes:
    """The dump of a session, a deleted one too, with its spans. Raises SessionNotFound.

    The same rows give the same bytes.
    """
    await settle_session(db, session_id)
    async with db.transaction() as transaction:
        await transaction.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY", ())
        profile = await transaction.fetch_one(_PROFILE, (session_id,))
        if profile is None:
            raise SessionNotFound(session_id.hex)
        read = [await _read(transaction, table, session_id) for table in (SESSION, *TABLES)]
    header = {"schema": SCHEMA, "session_id": session_id.hex, "profile": profile[0]}
    return await asyncio.to_thread(_packed, header, read)


def _packed(header: dict[str, Any], read: Sequence["_Read"]) -> bytes:
    lines = [dumps(header)]
    for one in read:
        lines += [dumps({"table": one.table, "row": _plain(one.columns, row)}) for row in one.rows]
    return gzip.compress(b"\n".join(lines) + b"\n", mtime=0)


@dataclass(frozen=True, slots=True)
class _Read:
    table: str
    columns: list[str]
    rows: list[Row]


async def _read(transaction: Transaction, table: Table, session_id: UUID) -> _Read:
    columns = [row[0] for row in await transaction.fetch_all(_COLUMNS, (table.table,))]
    kept = [name for name in columns if name not in table.left_out and name != "session_id"]
    key = "id" if table is SESSION else "session_id"
    rows = await transaction.fetch_all(
        f"SELECT {', '.join(kept)} FROM {table.table} WHERE {key} = %s ORDER BY {table.order}", (session_id,)
    )
    return _Read(table.name, kept, rows)


def _plain(columns: Sequence[str], row: Sequence[Any]) -> dict[str, Any]:
    return {name: _encoded(value) for name, value in zip(columns, row, strict=True) if value is not None}


def _encoded(value: Any) -> Any:
    if isinstance(value, bytes | memoryview):
        return {"$b": base64.b64encode(value).decode()}
    return {"$t": value.isoformat()} if isinstance(value, datetime) else value
