"""Exports by the clock, and the tasks that Celery's beat sends."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.conf import settings

from sessions_app.api.wiring import conninfo
from sessions_app.errors import InvalidArgument
from tests.exports.exporting import linear, rows
from trainer_export import tasks
from trainer_export.jobs.periodic import create_periodic, periodic_request
from trainer_export.jobs.running import look_at, on_loop
from trainer_export.renderers import profile_renderer
from trainer_export.shapes import SHAPES

_AT = datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC)


@pytest.fixture
def by_the_clock(toy, tmp_path: Path, monkeypatch):
    profile_renderer.cache_clear()
    client, engine = toy
    mark = tmp_path.name
    configuration = replace(
        settings.TITO,
        export_every_s=60.0,
        export_url=str(tmp_path),
        export_request={"shape": "trl", "format": "jsonl", "filters": {"labels": {"mark": mark}}},
    )
    monkeypatch.setattr(settings, "TITO", configuration)
    return client, engine, {"labels": {"mark": mark}}


def due(at: datetime):
    return on_loop(conninfo(), lambda db: create_periodic(db, settings.TITO, at))


def test_what_has_finished_is_exported_once(by_the_clock, tmp_path: Path) -> None:
    client, engine, options = by_the_clock
    session = linear(client, engine, **options)
    assert due(_AT) is None, "it is open"
    client.call("POST", f"/sessions/{session}/finish", {})
    job = due(_AT)
    assert job is not None
    assert due(_AT + timedelta(seconds=20)) is None, "the same slot"
    done = look_at(conninfo(), settings.TITO, profile_renderer, job)
    assert done is not None
    assert done.rows == 1
    out = tmp_path / "periodic" / "20260101T120000Z"
    assert rows(out, SHAPES["trl"], "jsonl")[0]["session_id"] == session
    assert due(_AT + timedelta(seconds=60)) is None, "nothing new"


@pytest.mark.parametrize(
    "request_json", [{"colour": 1}, {"filters": {"colour": 1}}, {"rules": {"picker": "os.system"}}]
)
def test_settings_that_mean_nothing_are_refused(by_the_clock, request_json) -> None:
    configuration = replace(settings.TITO, export_request=request_json)
    with pytest.raises(InvalidArgument):
        periodic_request(configuration, _AT)


def test_tasks_do_nothing_where_nothing_is_set(toy) -> None:
    assert tasks.periodic() is None
    assert tasks.retire() == 0
    assert tasks.reap() >= 0
    assert tasks.look("0" * 32) == "gone"


def test_every_periodic_task_is_there() -> None:
    from tito_project.celery import app

    app.loader.import_default_modules()
    for entry in settings.CELERY_BEAT_SCHEDULE.values():
        assert entry["task"] in app.tasks
