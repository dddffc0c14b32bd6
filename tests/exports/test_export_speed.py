"""Exports are fast, and hold no more in memory than a batch of rollouts."""

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from django.conf import settings

from sessions_app.api.wiring import conninfo
from sessions_app.store.pool import Database
from tests.exports.exporting import linear
from tests.exports.workers import asked
from tests.integration.web import ROOT, database_url
from trainer_export.jobs import job as jobs
from trainer_export.jobs.freeze import freeze
from trainer_export.jobs.rows import FROZEN_COLUMNS, frozen_from
from trainer_export.jobs.running import on_loop
from trainer_export.measuring import Size, measure
from trainer_export.renderers import profile_renderer

_LEAST_A_MINUTE = 20_000_000

_PROGRAM = """
import sys
import django
django.setup()
from django.conf import settings
from sessions_app.api.wiring import conninfo
from trainer_export.measuring import Size, measure
from trainer_export.renderers import profile_renderer
for sessions in map(int, sys.argv[1:]):
    print(measure(conninfo(), settings.TITO, profile_renderer, Size(sessions, 20, 200, 4800)).peak_mb)
"""


@pytest.fixture(autouse=True)
def _fresh_renderers() -> None:
    profile_renderer.cache_clear()


def test_twenty_million_tokens_a_minute_on_one_core(toy) -> None:
    """Processor time of this process with everything but Postgres, writing included."""
    measured = measure(conninfo(), settings.TITO, profile_renderer, Size(60, 20, 200, 300))
    assert measured.tokens == 600_000
    assert measured.tokens_a_minute > _LEAST_A_MINUTE


def test_replay_rows_count_for_what_is_read_at_once(toy, tmp_path: Path) -> None:
    client, engine = toy
    sessions = [linear(client, engine) for _ in range(2)]
    with psycopg.connect(conninfo(), autocommit=True) as db:
        db.execute(
            "INSERT INTO sessions_app_sidepayload (session_id, node_seq, kind, payload) "
            "VALUES (%s, 0, 'x', %s)",
            (sessions[1], bytes(32_000)),
        )
    job = asked(tmp_path, sessions, 10**9)

    async def frozen(db: Database) -> list[int]:
        found = await jobs.load(db, job)
        assert found is not None
        await freeze(db, found)
        query = f"SELECT {FROZEN_COLUMNS} WHERE f.job_id = %s ORDER BY f.position"
        return [frozen_from(row).tokens or 0 for row in await db.fetch_all(query, (job,))]

    plain, with_rows = on_loop(conninfo(), frozen)
    assert (plain, with_rows - plain) == (23, 1000)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_export(toy) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _PROGRAM, "15", "75"],
        cwd=ROOT,
        env={
            **os.environ,
            "DATABASE_URL": database_url(),
            "DJANGO_SETTINGS_MODULE": "tito_project.settings",
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    small, large = map(float, ran.stdout.split())
    assert large - small < 100, "15 and 75 sessions of 100,000 tokens"
