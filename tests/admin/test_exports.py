"""Screens of exports and traces: progress with its numbers, what can be done, rows of every model."""

import json
import uuid
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sessions_app.admin.pages import export_page
from sessions_app.admin.roles import OPERATOR, VIEWER, complete_roles
from sessions_app.models import Session
from tests.admin.seeding import Seeds, stale_row
from tests.admin.test_pages import RAW, page, twin
from trainer_export.admin import pages
from trainer_export.models import (
    ExportJob,
    ExportShard,
    FrozenSession,
    Handout,
    Span,
    Trace,
    WaitingSpan,
)

ODD = "<script>document</script>\u202e"


@pytest.fixture
def job() -> ExportJob:
    """A running export with one of two shards done."""
    made = ExportJob.objects.create(
        state="running",
        destination="/exports/one",
        format="jsonl",
        shape="native",
        shard_count=2,
        sessions=2,
        created_at=timezone.now(),
        frozen_at=timezone.now(),
    )
    for number, state in enumerate(("done", "pending")):
        ExportShard.objects.create(
            job=made, number=number, state=state, sessions=1, name=f"part-{number}.jsonl"
        )
    return made


def job_url(job: ExportJob) -> str:
    return f"/admin/trainer_export/exportjob/{job.pk}/change/"


def do_url(job: ExportJob, action: str) -> str:
    return f"/admin/trainer_export/exportjob/{job.pk.hex}/do/{action}/"


def test_progress_is_a_bar_with_its_numbers(staff: Client, job: ExportJob) -> None:
    text = page(staff, job_url(job))
    assert '<progress max="2" value="1">' in text
    assert "1 of 2" in text
    value = twin(staff, job_url(job))
    assert value["job"]["state"] == "running"
    assert (value["shards_done"], value["shard_count"]) == (1, 2)
    assert [shard["state"] for shard in value["shards"]] == ["done", "pending"]
    assert '<progress max="2" value="1">' in page(staff, "/admin/trainer_export/exportjob/")
    assert [
        row["name"] for row in twin(staff, f"/admin/trainer_export/exportshard/?job={job.pk}")["rows"]
    ] == [
        "part-1.jsonl",
        "part-0.jsonl",
    ]


def test_an_export_is_cancelled_after_a_question(staff: Client, job: ExportJob, monkeypatch) -> None:
    sent: list[str] = []
    monkeypatch.setattr(pages, "send_workers", sent.append)
    assert "nothing is published" in page(staff, do_url(job, "cancel"))
    assert staff.post(do_url(job, "cancel")).status_code == 302
    assert ExportJob.objects.get(pk=job.pk).cancel_requested
    assert sent == [job.pk.hex]
    assert "asked the export to end" in page(staff, f"/admin/trainer_export/exportjob/{job.pk}/history/")


def test_only_what_ended_is_resumed(staff: Client, job: ExportJob, monkeypatch) -> None:
    sent: list[str] = []
    monkeypatch.setattr(pages, "send_workers", sent.append)
    staff.post(do_url(job, "resume"))
    assert sent == []
    ExportJob.objects.filter(pk=job.pk).update(state="failed")
    staff.post(do_url(job, "resume"))
    assert sent == [job.pk.hex]
    assert ExportJob.objects.get(pk=job.pk).state == "running"


def test_what_does_not_exist_is_told(staff: Client, job: ExportJob) -> None:
    for url in (do_url(job, "explode"), f"/admin/trainer_export/exportjob/{uuid.uuid4().hex}/do/cancel/"):
        assert staff.get(url).status_code == 404


def test_rows_of_every_model_are_shown(staff: Client, seeds: Seeds, job: ExportJob) -> None:
    session = Session.objects.get(pk=seeds.plain)
    now = timezone.now()
    rows: list[Any] = [
        stale_row(session, 2, f"{session.id.hex}:2"),
        FrozenSession.objects.create(
            job=job,
            shard=0,
            position=0,
            session_id=session.id,
            unit=ODD,
            rollout_id="r",
            next_seq=3,
            finished=True,
            healer="[0,0,0,0]",
        ),
        Handout.objects.create(unit=ODD, completed_at=now),
        Trace.objects.create(
            session=session,
            trace_id="a" * 32,
            name=ODD,
            spans=1,
            calls=1,
            rewards=0,
            failed=1,
            start_ns=10**18,
            end_ns=10**18 + 10**6,
            first_received_at=now,
            last_received_at=now,
        ),
        Span.objects.create(
            session=session,
            trace_id="a" * 32,
            span_id="b" * 16,
            name=ODD,
            status_code="ERROR",
            start_ns=10**18,
            end_ns=None,
            sequence_id=1,
            sequence_given=False,
            attributes='{"a":"<script>document</script>"}',
            origin=b"x",
            is_call=True,
            is_reward=False,
            received_at=now,
        ),
        WaitingSpan.objects.create(trace_id="c" * 32, span_id="d" * 16, name=ODD, body="{}", received_at=now),
    ]
    for row in rows:
        url = f"/admin/trainer_export/{row._meta.model_name}/"
        for text in (page(staff, url), page(staff, f"{url}{row.pk}/change/")):
            assert not any(raw in text for raw in RAW), url
        assert twin(staff, f"{url}{row.pk}/change/")


LIST = "/admin/sessions_app/session/"


def choose(client: Client, *sessions: str, **more: str) -> Any:
    return client.post(LIST, {"action": "export_chosen", "_selected_action": [*sessions], **more})


def test_chosen_sessions_are_exported_after_a_question(
    staff: Client, seeds: Seeds, monkeypatch, tmp_path, settings
) -> None:
    sent: list[str] = []
    monkeypatch.setattr(export_page, "send_workers", lambda job: not sent.append(job))  # type: ignore[func-returns-value]
    settings.TITO = replace(settings.TITO, export_url=str(tmp_path))
    before = set(ExportJob.objects.values_list("pk", flat=True))
    assert '<option value="export_chosen">' in page(staff, LIST)
    asked = choose(staff, seeds.plain, seeds.busy)
    assert "Export 2 sessions?" in asked.content.decode()
    assert set(ExportJob.objects.values_list("pk", flat=True)) == before, "a question changes nothing"
    given = choose(staff, seeds.plain, seeds.busy, confirmed="1", shape="trl", format="jsonl")
    (job,) = ExportJob.objects.exclude(pk__in=before)
    assert given.headers["location"] == job_url(job)
    assert f"asked for the export to {job.destination}" in page(staff, job_url(job))
    assert "asked for an export of 2 chosen sessions" in page(staff, f"{job_url(job)[:-7]}history/")
    assert (job.source, job.shape, job.format, job.state) == ("admin", "trl", "jsonl", "pending")
    assert job.destination.startswith(f"{tmp_path}/admin/")
    assert set(json.loads(job.filters)["sessions"]) == {seeds.plain, seeds.busy}
    assert sent == [job.pk.hex]


def test_only_operators_export(client: Client, seeds: Seeds) -> None:
    complete_roles()
    for role, may in ((VIEWER, False), (OPERATOR, True)):
        user = User.objects.create(username=f"exports-{role}", is_staff=True)
        user.groups.add(Group.objects.get(name=role))
        client.force_login(user)
        assert ("export_chosen" in page(client, LIST)) is may
        assert ("Export 1 session?" in choose(client, seeds.plain).content.decode()) is may
    before = ExportJob.objects.count()
    client.force_login(User.objects.get(username=f"exports-{VIEWER}"))
    choose(client, seeds.plain, confirmed="1")
    assert ExportJob.objects.count() == before


def test_odd_choices_are_refused_or_the_default(staff: Client, seeds: Seeds, monkeypatch) -> None:
    monkeypatch.setattr(export_page, "send_workers", lambda job: False)
    monkeypatch.setattr(export_page, "MOST", 1)
    before = set(ExportJob.objects.values_list("pk", flat=True))
    many = choose(staff, seeds.plain, seeds.busy, confirmed="1")
    assert many.status_code == 302
    assert "At most 1 sessions" in page(staff, LIST)
    choose(staff, "0" * 32, confirmed="1")
    choose(staff, confirmed="1")
    assert set(ExportJob.objects.values_list("pk", flat=True)) == before
    choose(staff, seeds.plain, confirmed="1", shape="../x", format=ODD)
    (job,) = ExportJob.objects.exclude(pk__in=before)
    assert (job.shape, job.format) == ("native", "parquet")
    assert "The broker is away" in page(staff, job_url(job))


def finished(number: int, **report: Any) -> ExportJob:
    """A finished export with one shard."""
    counts: dict[str, Any] = {
        name: {} for name in ("masked", "statuses", "dropped_sessions", "dropped_leaves", "dropped_nodes")
    }
    counts |= {"rows": 1, "generated_tokens": 9, "trained_tokens": 9, "failures": [], "empty_reason": None}
    counts |= {"proof": {"proven": 9, "unproven": {"context": 0, "logprob": 0}, "unsampled": 0}}
    now = timezone.now()
    made = ExportJob.objects.create(
        state="done",
        destination=f"/exports/{number}",
        format="jsonl",
        shape="native",
        shard_count=1,
        created_at=now,
        frozen_at=now,
        finished_at=now,
        report=json.dumps(counts | report),
    )
    ExportShard.objects.create(
        job=made, number=0, state="done", sessions=1, name="part.jsonl", digest=str(number) * 64
    )
    return made


def test_what_was_left_out_stands_with_its_reason(staff: Client) -> None:
    job = finished(1, masked={"rolled_back": 4}, generated_tokens=13, dropped_leaves={"filtered_reward": 2})
    text = page(staff, job_url(job))
    assert "It left the active path." in text
    assert "A filter of the export left it out: reward." in text
    assert {check["name"]: check["holds"] for check in twin(staff, job_url(job))["checks"]} == {
        "complete": True,
        "exactly_once": True,
        "same_prefix": True,
        "sampled_only": True,
    }


def test_counts_that_do_not_add_up_are_told(staff: Client) -> None:
    job = finished(1, generated_tokens=13)
    checks = {check["name"]: check for check in twin(staff, job_url(job))["checks"]}
    assert checks["exactly_once"]["holds"] is False
    assert checks["exactly_once"]["numbers"] == {"sampled": 13, "trained": 9, "masked": 0}
    assert ">no</span>" in page(staff, job_url(job))


def test_two_exports_are_compared_value_by_value(staff: Client) -> None:
    one, other = finished(1, rows=5), finished(2, rows=7, masked={"context": 3})
    url = f"/admin/trainer_export/exportjob/diff/?a={one.pk.hex}&b={other.pk.hex}"
    value = twin(staff, url)
    assert {line["path"]: (line["one"], line["other"], line["change"]) for line in value["report"]} == {
        "rows": (5, 7, 2),
        "masked.context": (None, 3, 3),
    }
    assert value["asked"] == []
    assert value["files"] == {"same": 0, "differing": ["part.jsonl"], "only_one": 0, "only_other": 0}
    assert "+2" in page(staff, url)
    assert f"?a={one.pk.hex}" in page(staff, job_url(other))


def test_an_export_equals_itself(staff: Client) -> None:
    job = finished(1)
    url = f"/admin/trainer_export/exportjob/diff/?a={job.pk.hex}&b={job.pk.hex}"
    value = twin(staff, url)
    assert value["report"] == []
    assert value["files"]["same"] == 1
    assert "both reports count the same" in page(staff, url)


def test_what_cannot_be_compared_says_why(staff: Client, job: ExportJob) -> None:
    url = "/admin/trainer_export/exportjob/diff/"
    assert "has no report yet" in page(staff, f"{url}?a={job.pk.hex}&b={finished(1).pk.hex}")
    for query in ("", "?a=x&b=y", f"?a={job.pk.hex}", f"?a={job.pk.hex}&b={uuid.uuid4().hex}"):
        assert staff.get(url + query).status_code == 404


def test_exports_are_for_those_who_may_look(client: Client, job: ExportJob, django_user_model) -> None:
    client.force_login(django_user_model.objects.create(username="blind", is_staff=True))
    for url in (job_url(job), f"/admin/trainer_export/exportjob/diff/?a={job.pk.hex}&b={job.pk.hex}"):
        assert client.get(url).status_code == 403


def test_viewers_change_no_export(client: Client, job: ExportJob) -> None:
    complete_roles()
    user = User.objects.create(username="looks-at-exports", is_staff=True)
    user.groups.add(Group.objects.get(name=VIEWER))
    client.force_login(user)
    assert "/do/" not in page(client, job_url(job))
    for action in pages.ACTIONS:
        assert client.get(do_url(job, action)).status_code == 403
        assert client.post(do_url(job, action)).status_code == 403
    assert not ExportJob.objects.get(pk=job.pk).cancel_requested


def test_the_page_of_an_export_takes_a_handful_of_statements(staff: Client, job: ExportJob) -> None:
    for number in range(2, 60):
        ExportShard.objects.create(job=job, number=number, state="done", sessions=1, name=f"part-{number}")
    with CaptureQueriesContext(connection) as asked:
        page(staff, job_url(job))
    assert len(asked.captured_queries) <= 12, [query["sql"] for query in asked.captured_queries]
