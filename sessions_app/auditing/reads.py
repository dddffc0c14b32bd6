"""Notes of who looked at which session's text in the operator screens, and when.

Invariant: the note is stored before the page goes out; a page whose read cannot be noted is not shown. Equal
reads within an hour are one row that counts them, so refreshing a page costs no rows.
"""

from collections.abc import Iterable
from uuid import UUID

from django.db import connection

_NOTE = """
    INSERT INTO sessions_app_dataread (session_id, username, what, hour, reads, first_at, last_at)
    SELECT unnest(%s::uuid[]), %s, %s, date_trunc('hour', now()), 1, now(), now()
    ON CONFLICT (session_id, username, what, hour)
    DO UPDATE SET reads = sessions_app_dataread.reads + 1, last_at = now()
"""
_FORGET = "DELETE FROM sessions_app_dataread WHERE last_at < now() - %s * interval '1 day'"


def note(username: str, what: str, sessions: Iterable[UUID]) -> None:
    """Somebody reads sessions. In one order, so that two notes never wait for each other."""
    if ids := sorted(set(sessions)):
        with connection.cursor() as cursor:
            cursor.execute(_NOTE, (ids, username, what))


def forget(days: int) -> int:
    """Let go of what is older; how many rows that was."""
    with connection.cursor() as cursor:
        cursor.execute(_FORGET, (days,))
        return cursor.rowcount
