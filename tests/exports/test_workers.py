"""Exports under fire: workers killed in the middle of a shard, a broker that restarts, lost messages, disks
that are full. Nothing half-visible, nothing lost, nothing twice.
"""

import errno
import os
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path
from uuid import UUID

import pytest

from sessions_app.api.wiring import conninfo
from sessions_app.store.pool import Database
from tests.client import user
from tests.exports.exporting import export, linear, rows, shards, visible
from tests.exports.workers import asked, job_now, leases_run_out, shard_states, wait_for, worker
from tests.fakes.engine import Reply
from tests.integration.test_cases import says
from tests.integration.web import ROOT, database_url
from tests.toy import write_model, write_template
from tito_project.addresses import embedded_redis_url
from tito_project.embedded.home import prepare_home
from tito_project.embedded.places import places_of
from tito_project.embedded.valkey import EmbeddedValkey
from trainer_export.jobs import destinations
from trainer_export.jobs import job as jobs
from trainer_export.jobs.freeze import freeze
from trainer_export.jobs.job import Claim
from trainer_export.jobs.running import look_at, on_loop, unfinished_jobs
from trainer_export.models import Sample
from trainer_export.renderers import profile_renderer
from trainer_export.tasks import send_workers


@pytest.fixture(autouse=True)
def _fresh_renderers() -> None:
    profile_renderer.cache_clear()


def toy_settings(folder: Path) -> dict[str, str]:
    return {
        "TITO_MODEL": str(write_model(folder / "model")),
        "TITO_CHAT_TEMPLATE": str(write_template(folder, "toy-chatml")),
        "TITO_RENDERER": "template",
        "TITO_BACKEND": "sglang",
        "TITO_BACKEND_URL": "http://127.0.0.1:9",
    }


def looked(job: UUID) -> str:
    from django.conf import settings

    found = look_at(conninfo(), settings.TITO, profile_renderer, job, patient=False)
    assert found is not None
    return str(found.state)


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_is_followed_by_another(toy, tmp_path: Path) -> None:
    client, engine = toy
    sessions = [linear(client, engine) for _ in range(12)]
    out = tmp_path / "out"
    job = asked(out, sessions, shard_tokens=80)
    with worker(toy_settings(tmp_path), tmp_path) as first:
        assert send_workers(job.hex)
        wait_for(lambda: "done" in shard_states(job) and "running" in shard_states(job))
        first.kill()
    assert "running" in shard_states(job)
    assert [name for name in visible(out) if not name.startswith(".part-")] == []
    leases_run_out(job)
    with worker(toy_settings(tmp_path), tmp_path):
        wait_for(lambda: job_now(job).state == "done")
    assert [row["session_id"] for row in rows(out)] == sessions
    assert [name for name in visible(out) if name.startswith(".part-")] == []
    export(tmp_path / "again", "--rerun", job.hex)
    assert visible(out) == visible(tmp_path / "again")
    for name in visible(out):
        assert (out / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


@pytest.mark.slow
def test_a_broker_that_restarts_loses_nothing(toy, tmp_path: Path) -> None:
    client, engine = toy
    sessions = [linear(client, engine) for _ in range(8)]
    job, lost = (asked(tmp_path / name, sessions, shard_tokens=100) for name in ("a", "b"))
    places = places_of(tmp_path / "broker")
    prepare_home(places)
    broker = EmbeddedValkey(places).start()
    try:
        settings = toy_settings(tmp_path) | {"REDIS_URL": embedded_redis_url(places)}
        with worker(settings, tmp_path):
            wait_for(lambda: "running" in shard_states(job))
            broker.stop()
            broker = EmbeddedValkey(places).start()
            wait_for(lambda: job_now(job).state == "done" and job_now(lost).state == "done")
    finally:
        broker.stop()
    for name in ("a", "b"):
        assert [row["session_id"] for row in rows(tmp_path / name)] == sessions


def test_looking_twice_or_at_once_makes_one_export(toy, tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    client, engine = toy
    sessions = [linear(client, engine) for _ in range(6)]
    job = asked(tmp_path / "out", sessions, shard_tokens=1, postprocessor="default")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: looked(job), range(4)))
    wait_for(lambda: looked(job) == "done", 20)
    assert [row["session_id"] for row in rows(tmp_path / "out")] == sessions
    assert looked(job) == "done"


def test_cancelling_a_running_job_shows_nothing_and_resuming_ends_it(toy, tmp_path: Path) -> None:
    client, engine = toy
    sessions = [linear(client, engine) for _ in range(6)]
    out = tmp_path / "out"
    job = asked(out, sessions, shard_tokens=1)
    thread = threading.Thread(target=looked, args=(job,))
    thread.start()
    wait_for(lambda: "done" in shard_states(job))
    assert client.call("POST", f"/exports/{job.hex}/cancel").status == 200
    started = time.monotonic()
    thread.join()
    assert time.monotonic() - started < 10
    assert job_now(job).state == "cancelled"
    assert set(shard_states(job)) == {"pending"}
    assert visible(out) == []
    client.call("POST", f"/exports/{job.hex}/resume")
    assert looked(job) == "done"
    assert [row["session_id"] for row in rows(out)] == sessions


def test_a_turn_that_comes_while_a_job_runs_is_not_in_it(toy, tmp_path: Path) -> None:
    client, engine = toy
    sessions = [linear(client, engine) for _ in range(6)]
    job = asked(tmp_path / "out", sessions, shard_tokens=1)
    thread = threading.Thread(target=looked, args=(job,))
    thread.start()
    wait_for(lambda: "done" in shard_states(job))
    assert shard_states(job)[-1] == "pending"
    engine.script(Reply([102, 2], message=says("more")))
    history = [user("hello"), says("ab"), user("ok"), says("ab"), user("go on")]
    assert client.chat(sessions[-1], history).headers["x-tito-attach"] == "append"
    client.call("POST", f"/sessions/{sessions[-1]}/rewards", {"value": 1})
    thread.join()
    wait_for(lambda: looked(job) == "done", 20)
    made = rows(tmp_path / "out")
    assert [row["session_id"] for row in made] == sessions
    assert [(row["path"].tolist(), row["reward"]) for row in made] == [([0, 1], None)] * 6
    marks = Sample.objects.filter(job_id=job).values_list("session_id", "stale_reason")
    assert {session.hex: reason for session, reason in marks} == dict.fromkeys(sessions) | {
        sessions[-1]: "reward"
    }, "what was reported before its row was entered is not in the row"
    export(tmp_path / "after", sessions=sessions[-1:])
    (after,) = rows(tmp_path / "after")
    assert (after["path"].tolist(), after["reward"]) == ([0, 1, 2], 1.0)


def test_a_disk_that_is_full_in_the_middle(toy, tmp_path: Path, monkeypatch) -> None:
    client, engine = toy
    sessions = [linear(client, engine) for _ in range(3)]
    out = tmp_path / "out"
    job = asked(out, sessions, shard_tokens=1, postprocessor="default")
    publish = destinations.LocalFolder.publish

    def full(self: destinations.LocalFolder, file: Path, name: str) -> None:
        if "00001" in name:
            raise OSError(errno.ENOSPC, "No space left on device")
        publish(self, file, name)

    monkeypatch.setattr(destinations.LocalFolder, "publish", full)
    assert looked(job) == "failed"
    assert "No space left on device" in (job_now(job).error_text or "")
    whole = [f"shard-0000{number}-of-00003.parquet" for number in (0, 2)]
    assert visible(out) == [f".part-{job.hex}", *(f".part-{job.hex}/{name}" for name in whole)]
    monkeypatch.undo()
    client.call("POST", f"/exports/{job.hex}/resume")
    assert looked(job) == "done"
    assert [row["session_id"] for row in rows(out)] == sessions


@pytest.mark.slow
def test_a_process_that_may_not_write_so_much_says_so_and_leaves_nothing(toy, tmp_path: Path) -> None:
    client, engine = toy
    session = linear(client, engine)
    out = tmp_path / "out"
    ran = subprocess.run(
        [sys.executable, "manage.py", "export_samples", "--out", str(out), "--session", session],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": database_url(), **toy_settings(tmp_path)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048)),
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 1
    assert "File too large" in ran.stderr
    assert visible(out) == []


def test_a_failed_job_that_is_given_up_leaves_nothing(toy, tmp_path: Path, monkeypatch) -> None:
    client, engine = toy
    sessions = [linear(client, engine) for _ in range(3)]
    out = tmp_path / "out"
    job = asked(out, sessions, shard_tokens=1, postprocessor="default")
    move = destinations.LocalFolder.move

    def broken(self: destinations.LocalFolder, name: str, target: str) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(destinations.LocalFolder, "move", broken)
    assert looked(job) == "failed"
    monkeypatch.setattr(destinations.LocalFolder, "move", move)
    (out / f".part-{job.hex}" / ".part-killed").mkdir()
    assert len(visible(out)) == 5
    assert client.call("POST", f"/exports/{job.hex}/cancel").json["state"] == "cancelled"
    assert job in unfinished_jobs(conninfo()), "a patrol comes where no worker was told"
    assert looked(job) == "cancelled"
    assert visible(out) == []
    assert job not in unfinished_jobs(conninfo())
    client.call("POST", f"/exports/{job.hex}/resume")
    assert looked(job) == "done"
    assert [row["session_id"] for row in rows(out)] == sessions


def test_what_somebody_still_writes_is_left_alone(toy, tmp_path: Path) -> None:
    """A worker taken for dead comes back after its job was cancelled: what it made is not counted."""
    client, engine = toy
    out = tmp_path / "out"
    job = asked(out, [linear(client, engine)], shard_tokens=1, postprocessor="default")

    async def claimed(db: Database) -> Claim | None:
        found = await jobs.load(db, job)
        assert found is not None
        await freeze(db, found)
        return await jobs.claim(db, job)

    claim = on_loop(conninfo(), claimed)
    assert claim is not None
    begun = out / f".part-{job.hex}" / ".part-begun"
    begun.mkdir(parents=True)
    client.call("POST", f"/exports/{job.hex}/cancel")
    assert looked(job) == "running"
    assert begun.exists()
    leases_run_out(job)
    assert looked(job) == "cancelled"
    assert visible(out) == []
    nothing = {"digest": "", "size": 0, "rows": 0, "tokens": 0, "trained": 0, "report": "{}"}
    assert not on_loop(conninfo(), lambda db: jobs.complete(db, claim, nothing))


def test_a_message_that_never_arrived_is_found_by_the_patrol(toy, tmp_path: Path) -> None:
    client, engine = toy
    job = asked(tmp_path / "out", [linear(client, engine)], 1, "default")
    assert job in unfinished_jobs(conninfo())
    assert looked(job) == "done"
    assert job not in unfinished_jobs(conninfo())
    assert len(shards(tmp_path / "out")) == 1
