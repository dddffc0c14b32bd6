"""Purging text: no table holds what was said, and tokens stay as they were."""

import json
from uuid import UUID

import pytest
from django.db import connection, transaction

from sessions_app.models import WhatIfJob
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
    with transaction.atomic(), connection.cursor() as cursor:
        return purge_session(cursor, UUID(session))


def test_no_table_holds_what_was_said(toy, tmp_path) -> None:
    client, engine = toy
    session = spoken(client, engine)
    WhatIfJob.objects.create(
        wanted="{}", created_at="2026-01-01T00:00Z", report=json.dumps([{"session_id": session, "a": SECRET}])
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
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE sessions_app_record SET state = 'intent' WHERE session_id = %s RETURNING id", [session]
        )
        with pytest.raises(NotPurged, match="in flight"):
            purge(session)
        cursor.execute("UPDATE sessions_app_record SET state = 'committed' WHERE session_id = %s", [session])
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
