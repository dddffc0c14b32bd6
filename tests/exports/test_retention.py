"""Retention: age, acknowledgement, dry runs, text; never what training has not seen."""

import io
import json
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from sessions_app.api.wiring import conninfo
from sessions_app.models import Message, Session
from sessions_app.store.pool import Database
from tests.client import user
from tests.exports.exporting import export, linear, rows
from tests.exports.workers import asked
from tests.fakes.engine import Reply
from tests.integration.test_cases import says
from trainer_export.jobs import job as jobs
from trainer_export.jobs.freeze import freeze
from trainer_export.jobs.running import on_loop
from trainer_export.renderers import profile_renderer


@pytest.fixture(autouse=True)
def _only_what_this_test_makes_is_old(toy) -> None:
    profile_renderer.cache_clear()
    with psycopg.connect(conninfo(), autocommit=True) as db:
        db.execute("UPDATE sessions_app_session SET finished_at = now() WHERE finished_at IS NOT NULL")


def retention(*arguments: str) -> dict[str, Any]:
    said = io.StringIO()
    call_command("retention", *arguments, stdout=said)
    return json.loads(said.getvalue())


def aged(*sessions: str) -> None:
    with psycopg.connect(conninfo(), autocommit=True) as db:
        db.execute(
            "UPDATE sessions_app_session SET finished_at = now() - interval '40 days' WHERE id = ANY(%s)",
            ([*sessions],),
        )


def ended(client, engine) -> str:
    session = linear(client, engine)
    client.call("POST", f"/sessions/{session}/finish", {})
    return session


def here(session: str) -> bool:
    return Session.objects.filter(id=session).exists()


def test_old_and_exported_goes_and_nothing_else(toy, tmp_path: Path) -> None:
    client, engine = toy
    exported, unexported, young, running = (ended(client, engine) for _ in range(4))
    is_open = linear(client, engine)
    export(tmp_path, sessions=[exported, young, is_open])
    aged(exported, unexported, is_open)
    expected = {"sessions": 1, "tokens": 23, "kept_sessions": 1, "kept_tokens": 23, "text_only": False}
    assert retention("--days", "30", "--dry-run") == {**expected, "dry_run": True}
    assert here(exported)
    assert retention("--days", "30") == {**expected, "dry_run": False}
    assert [here(one) for one in (exported, unexported, young, running, is_open)] == [False] + [True] * 4
    assert retention("--days", "30")["sessions"] == 0
    assert retention("--days", "30", "--unexported")["sessions"] == 1
    assert not here(unexported)


def test_nothing_of_a_removed_session_is_left(toy, tmp_path: Path) -> None:
    client, engine = toy
    session = ended(client, engine)
    client.call("POST", f"/sessions/{session}/rewards", {"value": 1, "node": 0})
    export(tmp_path, sessions=[session])
    aged(session)
    retention("--days", "30")
    left = []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.table_name FROM information_schema.columns c JOIN information_schema.tables t "
            "USING (table_schema, table_name) WHERE c.column_name = 'session_id' AND c.data_type = 'uuid' "
            "AND t.table_type = 'BASE TABLE'"
        )
        for (table,) in cursor.fetchall():
            cursor.execute(f"SELECT count(*) FROM {table} WHERE session_id = %s", [session])
            if cursor.fetchone()[0]:
                left.append(table)
    assert left == ["trainer_export_frozensession"], "which says what an export once held"


def test_what_went_on_after_its_export_stays(toy, tmp_path: Path) -> None:
    client, engine = toy
    session = linear(client, engine)
    export(tmp_path, sessions=[session])
    engine.script(Reply([102, 2], message=says("ok")))
    client.chat(session, [user("again")])
    client.call("DELETE", f"/sessions/{session}")
    aged(session)
    assert retention("--days", "30")["kept_sessions"] == 1
    assert here(session)


def test_an_admin_discards_a_session_with_all_its_rows(toy, tmp_path: Path) -> None:
    client, engine = toy
    session = linear(client, engine)
    assert client.call("DELETE", f"/sessions/{session}?discard=yes").code == "invalid_argument"
    assert client.call("DELETE", f"/sessions/{session}?discard=true").status == 204
    assert not here(session)
    assert client.call("DELETE", f"/sessions/{session}?discard=true").code == "session_not_found"
    assert client.chat(session, [user("hello")]).code == "session_not_found"
    assert export(tmp_path, sessions=[session])["sessions"] == 0


def test_what_an_export_needs_is_hidden_and_not_discarded(toy, tmp_path: Path) -> None:
    client, engine = toy
    session = linear(client, engine)
    job = asked(tmp_path, [session], 10**9)

    async def frozen(db: Database) -> None:
        found = await jobs.load(db, job)
        assert found is not None
        await freeze(db, found)

    on_loop(conninfo(), frozen)
    assert client.call("DELETE", f"/sessions/{session}?discard=true").status == 204
    assert here(session)
    assert client.call("GET", f"/sessions/{session}").code == "session_not_found"


def test_a_session_without_turns_is_no_loss(toy) -> None:
    client, _ = toy
    session = client.create()
    client.call("DELETE", f"/sessions/{session}")
    aged(session)
    assert retention("--days", "30")["sessions"] == 1
    assert not here(session)


def test_an_export_of_what_is_gone_says_so(toy, tmp_path: Path) -> None:
    from trainer_export.models import ExportJob

    client, engine = toy
    session = ended(client, engine)
    export(tmp_path / "a", sessions=[session])
    aged(session)
    retention("--days", "30")
    job = ExportJob.objects.get(destination=str(tmp_path / "a"))
    report = export(tmp_path / "b", "--rerun", job.id.hex)
    assert report["dropped_sessions"] == {"purged": 1}


def test_text_goes_while_tokens_stay(toy, tmp_path: Path) -> None:
    client, engine = toy
    session = ended(client, engine)
    export(tmp_path / "a", sessions=[session])
    aged(session)
    assert retention("--days", "30", "--text-only", "--dry-run")["sessions"] == 1
    assert retention("--days", "30", "--text-only")["sessions"] == 1
    assert retention("--days", "30", "--text-only")["sessions"] == 0, "there is no text left"
    bodies = Message.objects.filter(session_id=session).values_list("body", flat=True)
    assert all("hello" not in body and "ab" not in body for body in bodies)
    with connection.cursor() as cursor:
        cursor.execute("SELECT response FROM sessions_app_record WHERE session_id = %s", [session])
        assert all('"content":"ab"' not in row[0] for row in cursor.fetchall())
    assert client.get(session)["metadata"]["accumulated_token_ids"][:4] == [1, 5, 3, 101]
    export(tmp_path / "b", sessions=[session])
    one, other = rows(tmp_path / "a")[0], rows(tmp_path / "b")[0]
    for name in ("tokens", "loss_mask", "logprobs"):
        assert one[name].tolist() == other[name].tolist()
    assert (one["weight_versions"], one["metadata"]) == (other["weight_versions"], other["metadata"])


def test_it_does_not_guess_how_old(toy) -> None:
    with pytest.raises(CommandError, match="is needed"):
        retention()
