"""The web processes that serve, in the admin, in the metrics and on the command line."""

import io
import urllib.request

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from sessions_app.models import ProcessLease
from tests.admin.seeding import Seeds, Server
from tests.admin.test_pages import page


def test_a_process_is_shown_with_its_lease(staff: Client, seeds: Seeds) -> None:
    lease = ProcessLease.objects.filter(since__isnull=False).latest("renewed_at")
    text = page(staff, "/admin/sessions_app/processlease/")
    assert lease.process in text
    assert ">live</span>" in text
    said = io.StringIO()
    call_command("recover", "--list", stdout=said)
    assert f"{lease.process}  {lease.host}  pid {lease.pid}  live for" in said.getvalue()


def test_an_expired_lease_says_so(staff: Client, seeds: Seeds) -> None:
    latest = ProcessLease.objects.latest("renewed_at")
    latest.pk, latest.process, latest.expires_at = 5, "gone", latest.since
    latest.save(force_insert=True)
    assert ">expired</span>" in page(staff, "/admin/sessions_app/processlease/5/change/")


@pytest.mark.parametrize("seconds", ["-1", "nan", "inf"])
def test_an_age_that_is_none_settles_nothing(seconds: str) -> None:
    with pytest.raises(CommandError, match="--older-than-s must be a number from 0 to"):
        call_command("recover", "--older-than-s", seconds)


def test_living_processes_are_counted(seeded: tuple[Server, Seeds]) -> None:
    with urllib.request.urlopen(seeded[0].url + "/metrics") as reply:
        text = reply.read().decode()
    live = next(line for line in text.splitlines() if line.startswith('tito_processes{lease="live"}'))
    assert float(live.split()[1]) >= 1
