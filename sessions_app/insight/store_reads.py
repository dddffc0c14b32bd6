"""The store's own reads on Django's connection, for code that is not asynchronous.

The statements and the rows are the store's; only the connection differs. Invariant: nothing here waits but
for the database, so a read runs to its end in one step.
"""

from collections.abc import Coroutine
from typing import Any, TypeVar

from django.db import connection

from sessions_app.store.pool import Params, Row, Transaction

T = TypeVar("T")


class OrmTransaction(Transaction):
    """Runs a store function's statements where Django's run, in Django's transaction if there is one."""

    def __init__(self) -> None:
        """The connection is Django's, taken for each statement."""

    async def fetch_all(self, query: str, params: Params) -> list[Row]:
        """All rows of one statement."""
        with connection.cursor() as cursor:
            cursor.execute(query, params)
            return cursor.fetchall() if cursor.description else []

    async def fetch_one(self, query: str, params: Params) -> Row | None:
        """The first row, or None."""
        rows = await self.fetch_all(query, params)
        return rows[0] if rows else None

    async def execute(self, query: str, params: Params) -> None:
        """A statement without a result."""
        await self.fetch_all(query, params)


ORM = OrmTransaction()
"""The one there needs to be: it holds nothing."""


def settled(read: Coroutine[Any, Any, T]) -> T:
    """What a read over ORM gives."""
    try:
        read.send(None)
    except StopIteration as ended:
        return ended.value
    read.close()
    raise RuntimeError("a read of the store waited for something else than Django's connection")
