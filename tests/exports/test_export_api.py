"""Export jobs over HTTP, with the worker's part done in this process."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sessions_app.api.wiring import conninfo
from tests.client import Answer, Client
from tests.exports.exporting import linear, rows, visible
from tests.fakes.engine import FakeEngine
from tests.integration.test_cases import toy_server
from trainer_export.jobs.running import look_at, unfinished_jobs
from trainer_export.renderers import profile_renderer


@pytest.fixture(scope="module")
def served(tmp_path_factory, django_db_setup, django_db_blocker) -> Iterator[tuple[Client, FakeEngine, Path]]:
    exports = tmp_path_factory.mktemp("exports")
    profile_renderer.cache_clear()
    with (
        django_db_blocker.unblock(),
        toy_server(tmp_path_factory.mktemp("toy"), TITO_EXPORT_URL=str(exports)) as (client, engine),
    ):
        yield client, engine, exports
    profile_renderer.cache_clear()


def ask(client: Client, path: str, headers: dict[str, str] | None = None, **body: Any) -> Answer:
    return client.call("POST", "/exports", {"path": path, **body}, headers)


def worked(job: str) -> str:
    """As if a worker had looked."""
    from django.conf import settings

    found = look_at(conninfo(), settings.TITO, profile_renderer, uuid.UUID(job), patient=False)
    assert found is not None
    return str(found.state)


def only(*sessions: str) -> dict[str, Any]:
    return {"sessions": list(sessions)}


def test_a_job_from_request_to_report(served) -> None:
    client, engine, exports = served
    session = linear(client, engine)
    name = uuid.uuid4().hex
    asked = ask(client, f"run/{name}", format="jsonl", shape="trl", filters=only(session))
    assert asked.status == 201
    assert (asked.json["state"], asked.json["queued"]) == ("pending", True)
    job = asked.json["id"]
    assert uuid.UUID(job) in unfinished_jobs(conninfo())
    assert worked(job) == "done"
    shown = client.call("GET", f"/exports/{job}").json
    assert (shown["state"], shown["rows"], shown["report"]["rows"]) == ("done", 1, 1)
    assert [shard["state"] for shard in shown["shards"]] == ["done"]
    assert visible(exports / "run" / name) == ["manifest.json", "shard-00000-of-00001.jsonl"]
    assert uuid.UUID(job) not in unfinished_jobs(conninfo())
    listed = client.call("GET", "/exports?limit=1").json
    assert listed["exports"][0]["id"] == job
    older = client.call("GET", f"/exports?before={listed['before']}").json
    assert job not in [one["id"] for one in older["exports"]]


def test_an_idempotency_key_asks_once(served) -> None:
    client, engine, _ = served
    key = {"Idempotency-Key": uuid.uuid4().hex}
    filters = only(linear(client, engine))
    first, second = (ask(client, "same", key, filters=filters) for _ in range(2))
    assert (first.status, second.status) == (201, 200)
    assert first.json["id"] == second.json["id"]
    other = ask(client, "other", key, filters=filters)
    assert (other.status, other.code) == (409, "idempotency_conflict")


def test_two_reports_can_be_compared_and_a_job_run_again(served) -> None:
    client, engine, exports = served
    name = uuid.uuid4().hex
    sessions = [linear(client, engine) for _ in range(2)]
    jobs = []
    for number, chosen in enumerate((sessions[:1], sessions)):
        jobs.append(ask(client, f"{name}{number}", filters=only(*chosen)).json["id"])
        assert worked(jobs[-1]) == "done"
    shown = client.call("GET", f"/exports/{jobs[0]}?diff={jobs[1]}").json
    assert shown["diff"]["rows"] == [1, 2]
    assert shown["diff"]["statuses.completed"] == [1, 2]
    again = client.call("POST", "/exports", {"rerun_of": jobs[1], "path": f"{name}9"}).json["id"]
    assert worked(again) == "done"
    same = [exports / f"{name}{number}" / "shard-00000-of-00001.parquet" for number in (1, 9)]
    assert same[0].read_bytes() == same[1].read_bytes()


def test_cancelled_before_it_began_and_resumed(served) -> None:
    client, engine, exports = served
    name = uuid.uuid4().hex
    job = ask(client, name, filters=only(linear(client, engine))).json["id"]
    assert client.call("POST", f"/exports/{job}/cancel").json["state"] == "cancelled"
    assert worked(job) == "cancelled"
    assert not (exports / name).exists()
    assert client.call("POST", f"/exports/{job}/resume").json["state"] == "pending"
    assert worked(job) == "done"
    assert len(rows(exports / name)) == 1
    for action in ("cancel", "resume"):
        refused = client.call("POST", f"/exports/{job}/{action}")
        assert (refused.status, refused.code) == (409, "conflict")


@pytest.mark.parametrize(
    "path",
    ["/etc", "../up", "a/../b", "a//b", "", "a/", "s3://bucket/x", "file:///tmp/x", ".part-x", "a/.hidden",
     "a\\b", "a\u0000b", "~/x", "a b"],
)  # fmt: skip
def test_a_request_names_no_place_outside_of_the_configured_one(served, path: str) -> None:
    answer = ask(served[0], path)
    assert (answer.status, answer.code) == (400, "invalid_argument")


@pytest.mark.parametrize(
    "body",
    [
        {"rules": {"picker": "os.system"}},
        {"rules": {"postprocessor": "tests.samples.hook_functions.identity"}},
        {"rules": {"colour": 1}},
        {"filters": {"colour": 1}},
        {"filters": []},
        {"format": "csv"},
        {"shape": "rows"},
        {"shape": "triplets", "rules": {"traces": {"mode": "best"}}},
        {"colour": 1},
        {"rules": {"max_seq_len": 0}},
        {"rules": {"max_seq_len": "1"}},
        {"rerun_of": "nonsense", "format": "csv"},
    ],
)
def test_odd_requests_are_refused(served, body: dict[str, Any]) -> None:
    answer = ask(served[0], "p", **body)
    assert (answer.status, answer.code) == (400, "invalid_argument"), answer.body


def test_unknown_jobs_are_not_found(served) -> None:
    client = served[0]
    for job in ("x", uuid.uuid4().hex):
        for method, path in (("GET", ""), ("POST", "/cancel"), ("POST", "/resume")):
            answer = client.call(method, f"/exports/{job}{path}")
            assert (answer.status, answer.code) == (404, "not_found")


def test_a_destination_that_cannot_be_written_fails_the_job_and_leaves_nothing(served) -> None:
    client, engine, exports = served
    name = uuid.uuid4().hex
    (exports / name).write_text("a file where a folder should be")
    job = ask(client, name, filters=only(linear(client, engine))).json["id"]
    assert worked(job) == "failed"
    shown = client.call("GET", f"/exports/{job}").json
    assert "FileExistsError" in shown["error"] or "NotADirectoryError" in shown["error"]
    (exports / name).unlink()
    assert client.call("POST", f"/exports/{job}/resume").status == 200
    assert worked(job) == "done"
    assert json.loads((exports / name / "manifest.json").read_text())["report"]["rows"] == 1


def test_a_dump_over_http(served) -> None:
    client, engine, _ = served
    answer = client.call("GET", f"/api/sessions/{linear(client, engine)}/dump")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/gzip")
    assert answer.body[:2] == b"\x1f\x8b"
    assert client.call("GET", f"/api/sessions/{'0' * 32}/dump").code == "session_not_found"
