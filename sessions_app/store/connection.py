"""A connection of the hot path: statements through libpq's own asynchronous calls, without cursors.

A cursor of psycopg costs more than the statement it runs. Here the socket stays registered with the event
loop, and a statement is a prepared name and its parameters. Invariants: everything psycopg does with the
connection (connect, transactions, checks) works as ever; a connection whose statement was cut short is
closed and never handed on.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from psycopg import AsyncConnection, errors, pq
from psycopg.adapt import Transformer

from sessions_app.store.parameters import BINARY, Parameters, encoded

Row = tuple[Any, ...]

_FAILED = (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE)


class StatementConnection(AsyncConnection[Row]):
    """Belongs to the event loop that made it; one statement at a time."""

    most_prepared = 200
    """Statements of one connection that get a name; more are run without one."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._names: dict[tuple[bytes, tuple[int, ...]], bytes] = {}
        self._values = Transformer(self)
        self._waiter: asyncio.Future[None] | None = None
        self._listened: int | None = None
        """The socket that the loop watches. libpq closes a dead one by itself, and its number is soon another
        connection's: it has to be let go by this number, before anything else happens."""

    async def run(self, text: bytes, values: Sequence[Any]) -> list[Row]:
        """All rows of one statement. Raises psycopg's errors."""
        parameters = encoded(values, self._values)
        try:
            await self._send(text, parameters)
            return self._rows(await self._result())
        except asyncio.CancelledError:
            self._stop_listening()
            self.pgconn.finish()
            raise
        except errors.Error:
            self._stop_listening()  # it may be dead, and nobody closes a dead one
            raise

    async def wait(self, *arguments: Any, **options: Any) -> Any:
        """Everything else psycopg does goes through here, and registers the socket itself."""
        self._stop_listening()
        return await super().wait(*arguments, **options)

    async def close(self) -> None:
        """Close it; the event loop lets go of the socket first."""
        self._stop_listening()
        await super().close()

    async def _send(self, text: bytes, parameters: Parameters) -> None:
        key = (text, parameters.types)
        name = self._names.get(key)
        if name is None and len(self._names) >= self.most_prepared:
            self.pgconn.send_query_params(
                text, parameters.values, parameters.types, parameters.formats, result_format=BINARY
            )
            return
        if name is None:
            name = b"tito_%d" % len(self._names)
            self.pgconn.send_prepare(name, text, parameters.types)
            self._checked(await self._result())
            self._names[key] = name
        self.pgconn.send_query_prepared(name, parameters.values, parameters.formats, result_format=BINARY)

    async def _result(self) -> pq.abc.PGresult:
        """The result of what was sent; the first failure, if any: a statement whose rows have come
        can still fail as it commits."""
        connection = self.pgconn
        while connection.flush():
            await self._writable()
            connection.consume_input()
        first: pq.abc.PGresult | None = None
        while (result := await self._next_result()) is not None:
            if first is None or (result.status in _FAILED and first.status not in _FAILED):
                first = result
        if first is None:
            raise errors.OperationalError("the server closed the connection without a result")
        return first

    async def _next_result(self) -> pq.abc.PGresult | None:
        """What the server says next, without ever waiting inside libpq; None: it has said everything."""
        connection = self.pgconn
        connection.consume_input()
        while connection.is_busy():
            await self._readable()
            connection.consume_input()
        return connection.get_result()

    def _checked(self, result: pq.abc.PGresult) -> pq.abc.PGresult:
        if result.status in _FAILED:
            raise errors.error_from_result(result, encoding="utf-8")
        return result

    def _rows(self, result: pq.abc.PGresult) -> list[Row]:
        if self._checked(result).status != pq.ExecStatus.TUPLES_OK:
            return []
        self._values.set_pgresult(result, set_loaders=True, format=pq.Format.BINARY)
        return self._values.load_rows(0, result.ntuples, tuple)

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        if self._listened is None:
            self._listened = self.pgconn.socket
            loop.add_reader(self._listened, self._on_readable)
        self._waiter = loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _on_readable(self) -> None:
        """With nobody waiting the server hangs up or says something unasked: the next statement will see."""
        if self._waiter is None:
            self._stop_listening()
        else:
            _wake(self._waiter)

    async def _writable(self) -> None:
        loop, socket = asyncio.get_running_loop(), self.pgconn.socket
        waiter: asyncio.Future[None] = loop.create_future()
        loop.add_writer(socket, _wake, waiter)
        try:
            await waiter
        finally:
            loop.remove_writer(socket)

    def _stop_listening(self) -> None:
        if self._listened is not None:
            asyncio.get_running_loop().remove_reader(self._listened)
            self._listened = None


class UnpreparedConnection(StatementConnection):
    """For poolers that hand one server's connection to several clients, where names would collide."""

    most_prepared = 0


def _wake(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)
