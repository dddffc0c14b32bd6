"""The schema and the hot path as docs/operations.md says they can be sharded: by session id.

Checked on the schema and on the statements that real requests send; there is no cluster here.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from sessions_app.store.pool import Database
from tests.client import Client, reply_of, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.test_cases import says, toy_server

pytestmark = pytest.mark.django_db
GUIDE = (Path(__file__).resolve().parents[2] / "docs/operations.md").read_text(encoding="utf-8")
CITUS = GUIDE.split("**Citus.**")[1].split("\n\n**")[0]
DISTRIBUTED_BY = {"sessions_app_session": "id"}
"""Distribution column where it is not session_id."""
REFERENCE = set(re.findall(r"`((?:sessions_app|trainer_export)_\w+)`", CITUS.split("Reference tables:")[1]))
NOT_UNIQUE_ON_SHARDS = set(re.findall(r"unique index `(\w+)`", CITUS))
OF_ALL_SESSIONS = (
    "WITH dead AS ( SELECT d.id FROM sessions_app_processlease",
    "DELETE FROM sessions_app_processlease",
    "WITH own AS ( UPDATE sessions_app_processlease",
)
"""Statements for every shard: of processes and their leases, not of a request."""
OURS = "'^(sessions_app|trainer_export)_'"


def rows(query: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchall()


def tables() -> set[str]:
    return {
        name
        for (name,) in rows(
            f"SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ~ {OURS} "
            "AND relnamespace = 'public'::regnamespace"
        )
    }


def key(table: str) -> str:
    return DISTRIBUTED_BY.get(table, "session_id")


def test_the_guide_names_tables_that_exist() -> None:
    assert tables() > REFERENCE
    assert len(REFERENCE) > 3


def test_every_other_unique_index_holds_the_distribution_column() -> None:
    found = rows(
        f"""
        SELECT t.relname, i.relname, array_agg(a.attname::text) FROM pg_index x
        JOIN pg_class t ON t.oid = x.indrelid AND t.relname ~ {OURS} JOIN pg_class i ON i.oid = x.indexrelid
        CROSS JOIN LATERAL unnest(x.indkey) AS k (num)
        JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.num
        WHERE x.indisunique AND t.relnamespace = 'public'::regnamespace GROUP BY 1, 2
        """
    )
    assert tables() <= {table for table, _, _ in found}, "a table without any key"
    without = {
        index for table, index, columns in found if table not in REFERENCE and key(table) not in columns
    }
    assert without == NOT_UNIQUE_ON_SHARDS


def test_foreign_keys_stay_within_a_session_or_lead_to_reference_tables() -> None:
    found = rows(
        f"""
        SELECT s.relname, t.relname, c.conname,
            (SELECT array_agg(a.attname || '=' || b.attname)
             FROM unnest(c.conkey, c.confkey) AS k (one, other)
             JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.one
             JOIN pg_attribute b ON b.attrelid = c.confrelid AND b.attnum = k.other)
        FROM pg_constraint c JOIN pg_class s ON s.oid = c.conrelid AND s.relname ~ {OURS}
        JOIN pg_class t ON t.oid = c.confrelid WHERE c.contype = 'f'
        """
    )
    assert len(found) > 20
    wrong = [
        name
        for table, target, name, pairs in found
        if target not in REFERENCE and (table in REFERENCE or f"{key(table)}={key(target)}" not in pairs)
    ]
    assert wrong == []


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Every statement that the store sends."""
    seen: set[str] = set()
    real = Database.run

    async def run(self: Database, connection: Any, query: str, params: Any) -> Any:
        seen.add(" ".join(query.split()))
        return await real(self, connection, query, params)

    monkeypatch.setattr(Database, "run", run)
    return seen


def lived(client: Client, engine: FakeEngine, policy: str) -> None:
    """A session with every kind of request an agent sends."""
    session, messages = client.create(history_policy=policy), [user("hello")]
    for turn in range(2):
        engine.script(Reply([100, 2], message=says("ab")))
        answer = client.chat(session, messages, headers={"idempotency-key": f"k{turn}"})
        messages = [*messages, reply_of(answer), user("ok")]
    client.chat(session, messages[:-2], headers={"idempotency-key": "k1"})
    for opening in ("hello", "other"):
        engine.script(Reply([100, 2], message=says("ab")))
        client.chat(session, [user(opening)])
    engine.script("500")
    client.chat(session, [user("once more")])
    client.chat(session, [{"role": 1}])
    client.get(session)
    client.call("POST", f"/sessions/{session}/samples", {})
    client.call("POST", f"/sessions/{session}/rewards", {"value": 1})
    client.call("DELETE", f"/sessions/{session}")


def unrouted(statement: str) -> Iterator[str]:
    """Tables of a statement for which it does not say which session."""
    mention = r"\b(FROM|JOIN|UPDATE|INTO) ((?:sessions_app|trainer_export)_\w+)(?: (?:AS )?([a-z]\b))?"
    for verb, table, alias in re.findall(mention, statement):
        if table in REFERENCE:
            continue
        column = key(table)
        named = rf"\b{alias}\.{column}" if alias and verb != "INTO" else rf"\b{column}"
        inserted = verb == "INTO" and re.search(rf"INTO {table}(?: AS \w)? ?\( ?{column}\b", statement)
        compared = re.search(rf"{named} = (ANY ?\()?|= {named}\b", statement)
        if not (inserted or compared):
            yield table


def test_every_statement_of_a_request_says_which_session(tmp_path, sent: set[str]) -> None:
    with toy_server(tmp_path) as (client, engine):
        for policy in ("tree", "linear", "rollback"):
            lived(client, engine, policy)
    asked = {one for one in sent if re.search(r"sessions_app_|trainer_export_", one)}
    assert len(asked) > 25
    everywhere = {one for one in asked if one.startswith(OF_ALL_SESSIONS)}
    wrong = {one: list(unrouted(one)) for one in asked - everywhere}
    assert {one: of for one, of in wrong.items() if of} == {}


@pytest.mark.parametrize(
    ("statement", "tables_of"),
    [
        ("SELECT 1 FROM sessions_app_node n WHERE n.seq = %s", ["sessions_app_node"]),
        ("SELECT 1 FROM sessions_app_node n WHERE n.session_id = %s", []),
        (
            "SELECT 1 FROM sessions_app_node n JOIN sessions_app_record r ON r.id = n.record_id "
            "WHERE n.session_id = %s",
            ["sessions_app_record"],
        ),
        ("UPDATE sessions_app_session SET version = 1", ["sessions_app_session"]),
        ("INSERT INTO sessions_app_reward (session_id, key) VALUES (%s, %s)", []),
        ("INSERT INTO sessions_app_reward (key) VALUES (%s)", ["sessions_app_reward"]),
    ],
)
def test_a_statement_for_every_shard_would_be_seen(statement: str, tables_of: list[str]) -> None:
    assert list(unrouted(statement)) == tables_of
