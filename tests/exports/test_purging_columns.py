"""Purging against the schema itself: a marker is planted in every column that can hold text, of every table
that holds rows of a session. A column that is new has to be emptied, or stand here with its reason.
"""

import json
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from sessions_app.api.wiring import conninfo
from tests.exports.test_purging import purge, spoken
from tests.integration.spans_support import batch, span, waiting

pytestmark = pytest.mark.django_db

MARKER = "quagga-in-every-column"
STAYS = {
    **dict.fromkeys(
        (
            "sessions_app_session",
            "sessions_app_reward",
            "trainer_export_sample",
            "trainer_export_frozensession",
        ),
        "what the driver said of a session: names, labels, settings, rewards",
    ),
    "sessions_app_dataread": "who read it",
    "sessions_app_node": "names of models, engines and agents, the engine's ids and words for an end",
    "sessions_app_record.idempotency_key": "the client's name of a request",
    "sessions_app_idempotencyclaim.key": "the same",
    "sessions_app_historyevent.field": "the path of a field",
    "sessions_app_historyevent.matcher": "a name",
    "sessions_app_historyevent.looser_matcher": "a name",
    **{
        f"sessions_app_record.{name}": "a name, a version or an address, never the body's"
        for name in ("path", "protocol", "process", "worker", "reason", "error_code", "weight_version")
    },
    "sessions_app_record.weight_version_dispatch": "a version",
    "sessions_app_message.role": "a name",
    "sessions_app_sidepayload.kind": "a name",
    **{
        f"sessions_app_{name}": "a name or a digest"
        for name in (
            "requesthead.template_fingerprint",
            "requesthead.tokenizer_fingerprint",
            "driftfinding.renderer",
            "driftfinding.renderer_fingerprint",
            "driftfinding.template_fingerprint",
        )
    },
    "trainer_export_trace": "names and ids",
    **{
        f"trainer_export_span.{name}": "a name or an id"
        for name in (
            *("trace_id", "span_id", "parent_id", "name", "status_code", "trace_state", "response_id"),
            *("conversation_id", "agent_name", "agent", "agent_before"),
        )
    },
}
"""Table or column: what may stand there is no part of a conversation."""

SAID = json.dumps(
    {"said": MARKER, "deep": {MARKER: [MARKER]}, "stop": [MARKER], "choices": [{"message": MARKER}]}
)
FORMS = {
    "trainer_export_span.events": json.dumps([{"name": "e", "time_ns": 1, "attributes": {"said": MARKER}}]),
    "trainer_export_span.links": json.dumps(
        [{"trace_id": "t", "span_id": "s", "attributes": {"said": MARKER}}]
    ),
    "trainer_export_spanorigin.body": json.dumps({"resource": {"process.command_args": [MARKER]}}),
    "sessions_app_record.response": json.dumps(
        {
            "choices": [
                {
                    "meta_info": {
                        "finish_reason": {"type": "stop", "matched": MARKER},
                        "id": {"said": MARKER},
                    }
                }
            ]
        }
    ),
    "sessions_app_record.request_params": json.dumps(
        {"stop": [MARKER], "response_format": {"json_schema": {"schema": {MARKER: {}}}}, "user": MARKER}
    ),
}
"""Texts in the form that their column has."""


@pytest.fixture
def db() -> Iterator[psycopg.Connection]:
    with psycopg.connect(conninfo(), autocommit=True) as connection:
        yield connection


def text_columns(db: psycopg.Connection) -> list[tuple[str, str]]:
    """Every one of a table that holds rows of sessions."""
    return db.execute(
        """
        SELECT c.table_name, c.column_name FROM information_schema.columns c
        JOIN information_schema.tables t USING (table_schema, table_name)
        WHERE t.table_schema = 'public' AND t.table_type = 'BASE TABLE'
          AND c.data_type IN ('text', 'character varying', 'json', 'jsonb')
          AND EXISTS (SELECT 1 FROM information_schema.columns s
                      WHERE s.table_schema = 'public' AND s.table_name = c.table_name
                        AND s.column_name = 'session_id')
        ORDER BY 1, 2
        """
    ).fetchall()


def plant(db: psycopg.Connection, session: str, table: str, column: str) -> int | None:
    """How many rows say it now; None: the column only takes what is on a list."""
    statement = sql.SQL("UPDATE {} SET {} = %s WHERE session_id = %s").format(
        sql.Identifier(table), sql.Identifier(column)
    )
    try:
        return db.execute(statement, (FORMS.get(f"{table}.{column}", SAID), session)).rowcount
    except (psycopg.errors.CheckViolation, psycopg.errors.StringDataRightTruncation):
        return None


def holding(db: psycopg.Connection, text: str) -> list[str]:
    """Every column of every table in which a text stands, as text or as bytes."""
    found = []
    for table, column, kind in db.execute(
        """
        SELECT c.table_name, c.column_name, c.data_type FROM information_schema.columns c
        JOIN information_schema.tables t USING (table_schema, table_name)
        WHERE t.table_schema = 'public' AND t.table_type = 'BASE TABLE'
        """
    ).fetchall():
        cell = sql.Identifier(column)
        where = sql.SQL("position(%s::bytea IN {}) > 0" if kind == "bytea" else "{}::text LIKE %s").format(
            cell
        )
        value = text.encode() if kind == "bytea" else f"%{text}%"
        query = sql.SQL("SELECT EXISTS (SELECT 1 FROM {} WHERE {})").format(sql.Identifier(table), where)
        if db.execute(query, (value,)).fetchone() == (True,):
            found.append(f"{table}.{column}")
    return found


def test_every_column_that_can_hold_text_is_emptied_or_named(toy, db: psycopg.Connection) -> None:
    session = spoken(*toy)
    stays, filled, without_rows = set(STAYS), set(), set()
    for table, column in text_columns(db):
        if table in stays or f"{table}.{column}" in stays:
            continue
        planted = plant(db, session, table, column)
        if planted:
            filled.add(f"{table}.{column}")
        elif planted == 0:
            without_rows.add(table)
    assert filled <= set(holding(db, MARKER))
    assert len(filled) >= 20
    assert without_rows <= {"sessions_app_driftfinding", "sessions_app_unattachedreply"}, "has no row to try"
    assert purge(session)
    assert holding(db, MARKER) == []
    client, _ = toy
    assert client.call("DELETE", f"/sessions/{session}?discard=true").status == 204, "nobody can read it"


def test_spans_that_wait_for_their_session_are_reached(toy, db: psycopg.Connection) -> None:
    client, engine = toy
    session = spoken(client, engine)
    trace = int(session, 16)
    said = {"gen_ai.prompt": MARKER, "gen_ai.request.model": "m", "agentlightning.reward.0.value": 1.0}
    event = {"name": "e", "timeUnixNano": "1", "attributes": [{"key": "k", "value": {"stringValue": MARKER}}]}
    late = span(9, trace, parent=7, attributes=said, events=[event]) | {
        "status": {"code": 2, "message": MARKER}
    }
    other = span(9, trace + 1, attributes=said)
    assert client.call("POST", "/v1/traces", batch(late, other, process__command=MARKER)).status == 200
    assert waiting(trace) == [f"{9:016x}"]
    assert "trainer_export_waitingspan.body" in holding(db, MARKER)
    assert purge(session)
    kept = db.execute(
        "SELECT body FROM trainer_export_waitingspan WHERE trace_id = %s", (f"{trace:032x}",)
    ).fetchall()
    assert MARKER not in kept[0][0]
    attributes = json.loads(json.loads(kept[0][0])["attributes"])
    assert attributes == {
        "gen_ai.request.model": "m", "agentlightning.reward.0.value": 1.0, "$purged": True
    }  # fmt: skip
    assert not purge(session), "there is no text left"
    (elsewhere,) = db.execute(
        "SELECT body FROM trainer_export_waitingspan WHERE trace_id = %s", (f"{trace + 1:032x}",)
    ).fetchall()
    assert MARKER in elsewhere[0], "nobody's yet: it goes within a day"
    db.execute("DELETE FROM trainer_export_waitingspan WHERE trace_id = %s", (f"{trace + 1:032x}",))
