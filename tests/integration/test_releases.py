"""Data of every release survive: its dump is restored, migrated to this version, served and exported.

`tests/fixtures/dump_release.py` makes the dump and says what the release told of it.
"""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection

from tests.client import reply_of, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.test_backup import command, program
from tests.integration.test_cases import fed, says
from tests.integration.web import ROOT, database_url, web_processes

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
FIXTURES = ROOT / "tests/fixtures"
RELEASES = sorted(path.name.split(".")[0] for path in FIXTURES.glob("release_*.sql.gz"))


@dataclass(frozen=True)
class Restored:
    """A database of an earlier release, migrated."""

    url: str
    told: dict[str, Any]
    """What the release said of it."""
    migrations_before: int

    def manage(self, *words: str) -> None:
        environment = {**os.environ, "DATABASE_URL": self.url}
        ended = subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr


@pytest.fixture(params=RELEASES, scope="module")
def restored(request, django_db_setup, django_db_blocker, tmp_path_factory) -> Iterator[Restored]:
    name, folder = request.param, tmp_path_factory.mktemp("release")
    script = folder / "dump.sql"
    script.write_bytes(gzip.decompress((FIXTURES / f"{name}.sql.gz").read_bytes()))
    told = json.loads(gzip.decompress((FIXTURES / f"{name}.json.gz").read_bytes()))
    with django_db_blocker.unblock():
        target = database_url().replace(f"/{connection.settings_dict['NAME']}", f"/tito_{name}")
        command(f"DROP DATABASE IF EXISTS tito_{name} WITH (FORCE)")
        command(f"CREATE DATABASE tito_{name} TEMPLATE template0")
        try:
            quiet = ("-q", "-X", "-v", "ON_ERROR_STOP=1", "-o", os.devnull)
            subprocess.run([program("psql"), *quiet, "-f", script, target], check=True)
            with psycopg.connect(target) as db:
                row = db.execute("SELECT count(*) FROM django_migrations").fetchone()
            migrated = Restored(target, told, row[0] if row else 0)
            migrated.manage("migrate", "-v", "0")
            yield migrated
        finally:
            command(f"DROP DATABASE IF EXISTS tito_{name} WITH (FORCE)")


def test_the_first_release_is_among_them() -> None:
    assert "release_0_1_0" in RELEASES


def test_the_dump_is_of_an_older_schema_and_nothing_is_left_to_apply(restored: Restored) -> None:
    with psycopg.connect(restored.url) as db:
        row = db.execute("SELECT count(*) FROM django_migrations").fetchone()
    assert row is not None
    assert row[0] >= restored.migrations_before
    restored.manage("migrate", "--check")


def test_its_sessions_go_on_with_the_ids_that_they_were_served(restored: Restored) -> None:
    with FakeEngine() as engine:
        surroundings = {
            "DATABASE_URL": restored.url, "TITO_BACKEND": "sglang", "TITO_BACKEND_URL": engine.url,
        }  # fmt: skip
        with web_processes(1, surroundings) as (server,):
            for number, opened in enumerate(restored.told["open"]):
                assert server.client.tokens(opened["id"]) == opened["tokens"]
                engine.script(Reply([100, 2], message=says("ok")))
                asked = [*opened["messages"], user("And now?")]
                answer = server.client.chat(opened["id"], asked, tools=opened["tools"])
                assert reply_of(answer)["content"] == "ok"
                assert answer.headers["x-tito-attach"] == "append"
                assert fed(engine, number)[: len(opened["tokens"])] == opened["tokens"]


def test_its_samples_are_those_that_it_exported(restored: Restored, tmp_path: Path) -> None:
    before = {row["sample_id"]: row for row in restored.told["rows"]}
    continued = {opened["id"] for opened in restored.told["open"]}
    restored.manage("export_samples", "--out", str(tmp_path), "--format", "jsonl")
    lines = [line for file in sorted(tmp_path.glob("*.jsonl")) for line in file.read_text().splitlines()]
    after = {row["sample_id"]: row for row in map(json.loads, lines)}
    same = [name for name in before if name.split(":")[0] not in continued]
    assert len(same) > 10
    for name in same:
        for column in ("tokens", "loss_mask", "logprobs", "status", "session_id", "weight_versions"):
            assert after[name][column] == before[name][column], (name, column)
