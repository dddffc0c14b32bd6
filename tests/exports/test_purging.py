"""Purging text: no table holds what was said, and tokens stay as they were."""

import json
from uuid import UUID

import psycopg
import pytest
from django.db import connection

from sessions_app.api.wiring import conninfo
from tests.client import Client, user
from tests.exports.exporting import export, linear, rows
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.spans_support import batch, span
from tests.integration.test_cases import says
from trainer_export import purging
from trainer_export.purging import NotPurged, purge_session

SECRET = "okapi-of-the-purge"
TOOL = {"type": "function", "function": {"name": "f", "description": SECRET, "parameters": {}}}


def spoken(client: Client, engine: FakeEngine) -> str:
    """A closed session that says the secret wherever something can be said."""
    session = client.create()
    for opening in (f"one {SECRET}", f"two {SECRET}"):
        engine.script(Reply([100, 2], message=says(SECRET)))
        client.chat(session, [user(opening)], tools=[TOOL], user=SECRET, stop=[SECRET])
    assert client.chat(session, [user(SECRET), {"role": SECRET}], tools=SECRET).status == 400
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.prompt.0.content": SECRET,
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [SECRET]}]),
        "llm.tokens": "[100, 2]",
        "agentlightning.reward.0.value": 0.5,
    }
    sent = span(1, int(session, 16), attributes=attributes) | {"status": {"code": 2, "message": SECRET}}
    client.call("POST", "/v1/traces", batch(sent, tito__session_id=session))
    client.call("POST", f"/sessions/{session}/finish", {})
    return session


def tables_with(text: str) -> list[str]:
    """Every table of ours in which a text stands."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' "
            "AND table_type = 'BASE TABLE' AND table_name ~ '^(sessions_app|trainer_export|django)_'"
        )
        names = [name for (name,) in cursor.fetchall()]
        found = []
        for name in names:
            cursor.execute(f"SELECT count(*) FROM {name} t WHERE t::text LIKE %s", [f"%{text}%"])
            found += [name] if cursor.fetchone()[0] else []
    return found


def purge(session: str) -> bool:
    """In a transaction that ends: exports wait for one that does not."""
    with psycopg.connect(conninfo()) as own:
        return purge_session(own.cursor(), UUID(session))


def test_no_table_holds_what_was_said(toy, tmp_path) -> None:
    client, engine = toy
    session = spoken(client, engine)
    report = json.dumps([{"session_id": session, "a": SECRET}])
    with psycopg.connect(conninfo(), autocommit=True) as own:
        own.execute(
            "INSERT INTO sessions_app_whatifjob (id, state, wanted, asked_by, done, cancel_requested, "
            "created_at, report) VALUES (gen_random_uuid(), 'done', '{}', '', 0, false, now(), %s)",
            (report,),
        )
    said = tables_with(SECRET)
    assert {f"sessions_app_{name}" for name in ("message", "record", "requesthead", "whatifjob")} <= set(said)
    assert {"sessions_app_historyevent", "trainer_export_span"} <= set(said)
    export(tmp_path / "a", sessions=[session])
    assert purge(session)
    assert tables_with(SECRET) == []
    assert not purge(session), "there is no text left"
    export(tmp_path / "b", sessions=[session])
    for one, other in zip(rows(tmp_path / "a"), rows(tmp_path / "b"), strict=True):
        for name in ("tokens", "loss_mask", "logprobs"):
            assert one[name].tolist() == other[name].tolist()
    with connection.cursor() as cursor:
        cursor.execute("SELECT attributes FROM trainer_export_span WHERE session_id = %s", [session])
        kept = json.loads(cursor.fetchone()[0])
    assert kept == {
        "gen_ai.operation.name": "chat",
        "llm.tokens": "[100, 2]",
        "agentlightning.reward.0.value": 0.5,
        "$purged": True,
    }


def test_what_still_needs_the_text_keeps_it(toy, tmp_path) -> None:
    client, engine = toy
    session = linear(client, engine)
    with pytest.raises(NotPurged, match="is open"):
        purge(session)
    client.call("POST", f"/sessions/{session}/finish", {})
    change = "UPDATE sessions_app_record SET state = %s WHERE session_id = %s"
    with psycopg.connect(conninfo(), autocommit=True) as own:
        own.execute(change, ("intent", session))
        with pytest.raises(NotPurged, match="in flight"):
            purge(session)
        own.execute(change, ("committed", session))
    assert purge(session)
    assert client.get(session)["metadata"]["accumulated_token_ids"][:4] == [1, 5, 3, 101]


def test_texts_of_tokens_go_wherever_they_are_kept() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.columns WHERE column_name = 'logprob_texts'"
        )
        tables = {name for (name,) in cursor.fetchall()}
    assert {"sessions_app_tokencheckpoint", "sessions_app_unattachedreply"} <= tables
    emptied = " ".join(purging._EMPTIED)
    assert all(f"UPDATE {table} SET logprob_texts = NULL" in emptied for table in tables)
