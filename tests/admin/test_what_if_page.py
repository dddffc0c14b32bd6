"""Replays asked for on a page: checked, run as a job with progress, shown with their differences."""

import json
import uuid

import pytest
from django.test import Client
from django.utils import timezone

from sessions_app.admin.readers import counting_renderer, world
from sessions_app.admin.twin import plain
from sessions_app.insight.what_if import jobs
from sessions_app.insight.what_if.running import RendererOf
from sessions_app.insight.what_if.wanted import Wanted
from sessions_app.models import WhatIfJob
from sessions_app.tasks import what_if, what_if_patrol
from tests.admin.seeding import Seeds
from tests.admin.test_pages import RAW, page, twin

FORM = "/admin/sessions_app/session/what-if/"


@pytest.fixture(autouse=True)
def no_broker(monkeypatch) -> None:
    """Jobs are run by the tests."""
    monkeypatch.setattr(what_if, "delay", lambda _: None)


def asked(staff: Client, **values: str) -> WhatIfJob:
    reply = staff.post(FORM, values)
    assert reply.status_code == 302
    return WhatIfJob.objects.get(pk=uuid.UUID(reply["Location"].rstrip("/").rpartition("/")[2]))


def test_a_replay_is_asked_for_run_and_shown(staff: Client, seeds: Seeds) -> None:
    job = asked(staff, sessions=f"{seeds.busy}\n{seeds.odd}", matcher="loose_tool_call", renders="1")
    assert twin(staff, f"{FORM}{job.pk.hex}/")["job"]["state"] == "pending"
    assert what_if(job.pk.hex) == "done"
    value = twin(staff, f"{FORM}{job.pk.hex}/")
    assert (value["job"]["done"], value["job"]["total"]) == (2, 2)
    assert value["report"]["sessions"] == 2
    assert value["report"]["accepted_pairs"] == 1
    assert value["report"]["rerendered_rows"] >= value["report"]["after"]["leaves"]
    text = page(staff, f"{FORM}{job.pk.hex}/")
    assert "tool_calls[0].function.arguments" in text
    assert not any(raw in text for raw in RAW)
    assert job.pk.hex[:12] in page(staff, FORM)
    assert json.loads(staff.get(f"/admin/sessions_app/whatifjob/{job.pk}/change/?format=json").content)


def test_a_job_runs_once(staff: Client, seeds: Seeds) -> None:
    job = asked(staff, sessions=seeds.plain, policy="linear")
    assert what_if(job.pk.hex) == "done"
    assert what_if(job.pk.hex) == "left alone"
    assert what_if(uuid.uuid4().hex) == "left alone"


def left_running(staff: Client, seeds: Seeds, *, attempts: int = 1) -> WhatIfJob:
    """A job whose worker died."""
    job = asked(staff, sessions=seeds.plain, policy="linear")
    long_ago = timezone.now() - 2 * jobs.LEASE
    WhatIfJob.objects.filter(pk=job.pk).update(
        state="running", lease=uuid.uuid4(), leased_until=long_ago, attempts=attempts
    )
    return job


def test_a_job_that_a_dead_worker_left_is_found_and_run_to_its_end(
    staff: Client, seeds: Seeds, monkeypatch
) -> None:
    job = left_running(staff, seeds)
    sent: list[str] = []
    monkeypatch.setattr(what_if, "apply_async", lambda args, **_: sent.extend(args))
    what_if_patrol()
    assert job.pk.hex in sent
    assert what_if(job.pk.hex) == "done"
    assert twin(staff, f"{FORM}{job.pk.hex}/")["report"]["sessions"] == 1


def test_a_job_that_ends_its_workers_is_given_up(staff: Client, seeds: Seeds) -> None:
    job = left_running(staff, seeds, attempts=jobs.MOST_ATTEMPTS)
    assert what_if(job.pk.hex) == "failed"
    assert "3 workers ended before it did" in page(staff, f"{FORM}{job.pk.hex}/")


def test_a_job_that_a_worker_runs_is_nobody_elses(staff: Client, seeds: Seeds) -> None:
    job = asked(staff, sessions=seeds.plain, policy="linear")
    WhatIfJob.objects.filter(pk=job.pk).update(
        state="running", lease=uuid.uuid4(), leased_until=timezone.now() + jobs.LEASE
    )
    assert job.pk not in jobs.unattended()
    assert what_if(job.pk.hex) == "left alone"


def test_a_worker_that_lost_its_lease_ends_without_a_word(staff: Client, seeds: Seeds) -> None:
    job = asked(staff, sessions=seeds.plain, policy="linear")
    other = uuid.uuid4()

    def taken_over(wanted: Wanted) -> RendererOf:
        WhatIfJob.objects.filter(pk=job.pk).update(lease=other)
        return counting_renderer(wanted)

    assert jobs.execute(job.pk, world(), taken_over, plain) == "left alone"
    now = WhatIfJob.objects.get(pk=job.pk)
    assert (now.state, now.lease, now.report) == ("running", other, None)


def test_a_job_whose_message_was_lost_is_found(staff: Client, seeds: Seeds) -> None:
    job = asked(staff, sessions=seeds.plain, policy="linear")
    assert job.pk not in jobs.unattended()
    WhatIfJob.objects.filter(pk=job.pk).update(created_at=timezone.now() - jobs.LEASE)
    assert job.pk in jobs.unattended()


def test_a_job_can_be_cancelled_before_and_while_it_runs(staff: Client, seeds: Seeds) -> None:
    job = asked(staff, sessions=seeds.plain, policy="linear")
    assert staff.post(f"{FORM}{job.pk.hex}/").status_code == 302
    assert WhatIfJob.objects.get(pk=job.pk).state == "cancelled"
    running = asked(staff, sessions=seeds.plain, policy="linear")
    WhatIfJob.objects.filter(pk=running.pk).update(cancel_requested=True)
    assert jobs.execute(running.pk, world(), counting_renderer, plain) == "cancelled"


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({}, "nothing is to be changed"),
        ({"policy": "nope"}, "is not one of"),
        ({"matcher": "nope"}, "invalid"),
        ({"matcher": "exact", "sessions": "xyz"}, "is no session id"),
        ({"matcher": "exact", "since": "yesterday"}, "is no moment"),
        ({"matcher": "exact", "limit": "many"}, "is no number"),
        ({"matcher": "exact", "max_rollback": "-1"}, "no whole number"),
        ({"profile": "nope"}, "does not exist"),
    ],
)
def test_what_cannot_be_replayed_is_told(
    staff: Client, seeds: Seeds, values: dict[str, str], told: str
) -> None:
    before = WhatIfJob.objects.count()
    reply = staff.post(FORM, values, follow=True)
    assert told in reply.content.decode()
    assert WhatIfJob.objects.count() == before


def test_an_unknown_replay_is_told(staff: Client, seeds: Seeds) -> None:
    for name in ("nonsense", uuid.uuid4().hex):
        assert staff.get(f"{FORM}{name}/").status_code == 404
