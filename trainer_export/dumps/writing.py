"""A session out of the database into a dump."""

import base64
import gzip
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sessions_app.errors import SessionNotFound
from sessions_app.json_text import dumps
from sessions_app.store.pool import Database, Transaction
from trainer_export.dumps.tables import SCHEMA, SESSION, TABLES, Table

_COLUMNS = """
    SELECT attname FROM pg_attribute
    WHERE attrelid = %s::text::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
_PROFILE = """
    SELECT p.name FROM sessions_app_session s JOIN sessions_app_modelprofile p ON p.id = s.profile_id
    WHERE s.id = %s
"""


async def dump(db: Database, session_id: UUID) -> bytes:
    """The dump of a session, a deleted one too. Raises SessionNotFound. The same rows give the same bytes."""
    lines: list[bytes] = []
    async with db.transaction() as transaction:
        await transaction.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY", ())
        profile = await transaction.fetch_one(_PROFILE, (session_id,))
        if profile is None:
            raise SessionNotFound(session_id.hex)
        header = {"schema": SCHEMA, "session_id": session_id.hex, "profile": profile[0]}
        lines.append(dumps(header))
        for table in (SESSION, *TABLES):
            lines += await _rows(transaction, table, session_id)
    return gzip.compress(b"\n".join(lines) + b"\n", mtime=0)


async def _rows(transaction: Transaction, table: Table, session_id: UUID) -> list[bytes]:
    columns = [row[0] for row in await transaction.fetch_all(_COLUMNS, (table.table,))]
    kept = [name for name in columns if name not in table.left_out and name != "session_id"]
    key = "id" if table is SESSION else "session_id"
    rows = await transaction.fetch_all(
        f"SELECT {', '.join(kept)} FROM {table.table} WHERE {key} = %s ORDER BY {table.order}", (session_id,)
    )
    return [dumps({"table": table.name, "row": _plain(kept, row)}) for row in rows]


def _plain(columns: Sequence[str], row: Sequence[Any]) -> dict[str, Any]:
    return {name: _encoded(value) for name, value in zip(columns, row, strict=True) if value is not None}


def _encoded(value: Any) -> Any:
    if isinstance(value, bytes | memoryview):
        return {"$b": base64.b64encode(value).decode()}
    return {"$t": value.isoformat()} if isinstance(value, datetime) else value
