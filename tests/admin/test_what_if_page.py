"""Replays asked for on a page: checked, run as a job with progress, shown with their differences."""

import json
import uuid

import pytest
from django.test import Client

from sessions_app.admin.readers import counting_renderer, world
from sessions_app.admin.twin import plain
from sessions_app.insight.what_if import jobs
from sessions_app.models import WhatIfJob
from sessions_app.tasks import what_if
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
