"""A longest time for the statements of a page: one that would read a large table to its end is given up."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import OperationalError, connection, transaction
from psycopg.errors import QueryCanceled

LONGEST_S = 5.0
_SET = """
    WITH before AS MATERIALIZED (SELECT current_setting('statement_timeout') AS value)
    SELECT value, set_config('statement_timeout', %s, true) FROM before
"""


class TooLong(Exception):
    """The database did not answer in time."""


@contextmanager
def time_bound(longest_s: float | None = None) -> Iterator[None]:
    """Statements inside may take so long, each. Raises TooLong."""
    limit = LONGEST_S if longest_s is None else longest_s
    try:
        with transaction.atomic():
            before = _set_timeout(f"{int(limit * 1000)}ms")
            yield
            _set_timeout(before)
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise TooLong from error
        raise


def _set_timeout(value: str) -> str:
    """Until the transaction ends; the value before."""
    with connection.cursor() as cursor:
        cursor.execute(_SET, [value])
        return str(cursor.fetchone()[0])
