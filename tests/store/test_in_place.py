"""A turn's update of its session's row touches no index, so Postgres does it in place."""

import re

import pytest
from django.db import connection

from sessions_app.store.commit import _COMMIT

pytestmark = pytest.mark.django_db


def changed_by_a_turn() -> set[str]:
    assignments = _COMMIT.split("UPDATE sessions_app_session SET")[1].split("WHERE")[0]
    return set(re.findall(r"(\w+) = ", assignments))


def indexed() -> set[str]:
    """Columns of the session that an index holds, or that its predicate asks."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT DISTINCT a.attname FROM pg_index i
            JOIN pg_attribute a ON a.attrelid = i.indrelid
            WHERE i.indrelid = 'sessions_app_session'::regclass
              AND pg_get_indexdef(i.indexrelid) ~ ('\\m' || a.attname || '\\M') AND a.attnum > 0
            """
        )
        return {name for (name,) in cursor.fetchall()}


def test_no_index_of_the_session_holds_what_a_turn_changes() -> None:
    assert {"next_seq", "version", "last_activity_at", "prompt_tokens"} <= changed_by_a_turn()
    assert {"id", "created_at", "rollout_id", "status"} <= indexed()
    assert changed_by_a_turn() & indexed() == set()
