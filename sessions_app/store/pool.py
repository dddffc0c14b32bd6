"""The asynchronous connection pool of the hot path.

Autocommit, binary parameters and results, statements prepared at first use where so asked. A
connection is taken for one statement (or one explicit transaction) and given back; it is never held across
an engine call.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from sessions_app.errors import NotReady
from sessions_app.store.connection import Row, StatementConnection, UnpreparedConnection
from sessions_app.store.statements import Params, numbered


class Database:
    """A pool bound to one event loop. `open` and `close` run on that loop."""

    def __init__(
        self, conninfo: str, *, max_size: int, prepared: bool = False, patience_s: float = 30.0
    ) -> None:
        """`patience_s`: longest wait for a free connection."""
        self.statements = 0
        """Statements sent so far; read by tests, the benchmark and the metrics."""
        self._pool: AsyncConnectionPool[StatementConnection] = AsyncConnectionPool(
            conninfo,
            connection_class=StatementConnection if prepared else UnpreparedConnection,
            min_size=1,
            max_size=max_size,
            open=False,
            timeout=patience_s,
            reconnect_timeout=patience_s / 2,  # pauses between attempts double: after it they begin anew
            kwargs={"autocommit": True},
            name="tito",
        )

    @property
    def waiting(self) -> int:
        """Who waits for a connection now."""
        return self._pool.get_stats().get("requests_waiting", 0)

    async def open(self, *, wait: bool = True) -> None:
        """Start the pool; raises NotReady where no connection can be made in time. Without `wait` the first
        statement sees.
        """
        try:
            await self._pool.open(wait=wait, timeout=30.0)
        except PoolTimeout:
            raise NotReady("the database does not answer") from None

    async def close(self) -> None:
        """Close every connection."""
        await self._pool.close()

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[StatementConnection]:
        try:
            connection = await self._pool.getconn()
        except PoolTimeout:
            raise NotReady("no database connection became free in time") from None
        try:
            yield connection
        finally:
            await self._pool.putconn(connection)

    async def fetch_all(self, query: str, params: Params) -> list[Row]:
        """All rows of one statement; sent once more where its connection turned out to be dead.

        So a statement may run twice: those that write either cannot apply twice, or leave a record that
        `recover` settles. Raises NotReady while the database stays away.
        """
        try:
            return await self._fetch(query, params)
        except _DATABASE_ERRORS as error:
            if not _is_lost(error):
                raise
        await self._pool.check()
        try:
            return await self._fetch(query, params)
        except _DATABASE_ERRORS as error:
            raise NotReady("the database went away") from error

    async def _fetch(self, query: str, params: Params) -> list[Row]:
        async with self._connection() as connection:
            return await self.run(connection, query, params)

    async def fetch_one(self, query: str, params: Params) -> Row | None:
        """The first row, or None."""
        rows = await self.fetch_all(query, params)
        return rows[0] if rows else None

    async def execute(self, query: str, params: Params) -> None:
        """A statement without a result."""
        await self.fetch_all(query, params)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["Transaction"]:
        """Several statements that hold together; keep it short."""
        async with self._connection() as connection, connection.transaction():
            yield Transaction(self, connection)

    async def run(self, connection: StatementConnection, query: str, params: Params) -> list[Row]:
        """One statement on a connection in hand. Raises NotReady where the server has no disk or memory."""
        self.statements += 1
        statement = numbered(query)
        try:
            return await connection.run(statement.text, statement.values(params))
        except psycopg.OperationalError as error:
            if error.sqlstate is not None and error.sqlstate.startswith(_OUT_OF_RESOURCES):
                raise NotReady("the database has run out of disk or memory") from error
            raise


class Transaction:
    """One open transaction."""

    def __init__(self, db: Database, connection: StatementConnection) -> None:
        self._db = db
        self._connection = connection

    async def fetch_all(self, query: str, params: Params) -> list[Row]:
        """All rows of one statement."""
        return await self._db.run(self._connection, query, params)

    async def fetch_one(self, query: str, params: Params) -> Row | None:
        """The first row, or None."""
        rows = await self._db.run(self._connection, query, params)
        return rows[0] if rows else None

    async def execute(self, query: str, params: Params) -> None:
        """A statement without a result."""
        await self._db.run(self._connection, query, params)


Executor = Database | Transaction
"""What a store function may run on."""

_OUT_OF_RESOURCES = "53"
"""Class of SQLSTATE: a full disk, no memory."""

_DATABASE_ERRORS = (psycopg.OperationalError, psycopg.InterfaceError)

LOST_CONNECTION = (*_DATABASE_ERRORS, NotReady)
"""What a statement raises when the database went away under it."""


def _is_lost(error: psycopg.Error) -> bool:
    """Whether the connection is gone, as against a statement that failed."""
    return error.sqlstate is None or error.sqlstate.startswith(("08", "57P"))
