"""`manage.py demo` against a whole server with the demo engine behind it."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.urls import reverse

from sessions_app.admin.searching import session_ids
from sessions_app.backends.demo.server import DemoEngine
from sessions_app.management.commands.demo import ADMIN_PATH
from sessions_app.models import Session
from tests.demo.engine import running_demo_engine
from tests.harness import running_server

MANAGE = Path(__file__).parents[2] / "manage.py"
NOWHERE = "http://127.0.0.1:9"
pytestmark = [pytest.mark.slow, pytest.mark.django_db]


@pytest.fixture(scope="module")
def engine() -> Iterator[tuple[DemoEngine, str]]:
    with running_demo_engine() as running:
        yield running


@pytest.fixture
def server(engine: tuple[DemoEngine, str], db: None) -> Iterator[str]:
    with running_server({"TITO_BACKEND": "demo", "TITO_BACKEND_URL": engine[1]}) as base:
        yield base


def demo(*options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(MANAGE), "demo", *options],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )


def rows(screen: str) -> dict[str, int]:
    """The numbers of the table by name."""
    found = re.findall(r"^ *(\S.*?) {2,}([\d,]+)(?: |$)", screen, re.MULTILINE)
    return {name: int(number.replace(",", "")) for name, number in found}


def test_agents_work_and_the_table_adds_up(server: str) -> None:
    ended = demo("--sessions", "8", "--concurrency", "4", "--base-url", server)
    assert ended.returncode == 0, ended.stderr + ended.stdout
    assert ended.stderr == ""
    shown = rows(ended.stdout)
    assert shown["sessions"] == 8
    assert shown["errors"] == 0
    assert shown["retry (retry)"] == 2
    assert shown["fork (message_edited)"] == 2
    assert shown["fork (subagent)"] == 2
    roots = shown["turns"] - shown["healed"]
    assert roots == 8 + 2, "only a first turn and a sub-agent begin anew"
    assert shown["tokenised"] == shown["reused"] + shown["added"]
    assert shown["reused"] > shown["added"] > 0
    assert shown["turns drifted"] > 0.8 * shown["healed"], "the demo engine rarely samples canonical ids"
    assert 0 < shown["ids misplaced"] <= shown["generated"]
    group = ended.stdout.partition(f"{server}{ADMIN_PATH}?q=")[2].strip()
    assert session_ids(group).count() == 8
    assert not Session.objects.filter(labels__contains='"render"').exists(), "what it measured with is gone"
    assert "\x1b" not in ended.stdout, "no bar, no colour, where no terminal watches"


def test_it_needs_no_base_url_where_the_settings_say_it(server: str) -> None:
    port = server.rpartition(":")[2]
    assert demo("--sessions", "1", TITO_PORT=port, TITO_BIND="127.0.0.1").returncode == 0


def test_a_failing_engine_is_counted_and_told(server: str, engine: tuple[DemoEngine, str]) -> None:
    engine[0].set_fault("missing_logprobs")
    try:
        ended = demo("--sessions", "2", "--base-url", server)
    finally:
        engine[0].set_fault("")
    assert ended.returncode == 1
    assert rows(ended.stdout)["errors"] == 2
    assert "2 x 502 upstream_" in ended.stdout
    assert ended.stderr == "CommandError: 2 of 2 sessions failed\n"


def test_no_server_is_one_clear_line() -> None:
    ended = demo("--base-url", NOWHERE)
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr == (
        f"CommandError: nothing answers at {NOWHERE}: run `manage.py up` first, or give --base-url\n"
    )


def test_the_admin_address_is_that_of_the_session_list() -> None:
    assert reverse("admin:sessions_app_session_changelist") == ADMIN_PATH


def test_something_else_is_one_clear_line(engine: tuple[DemoEngine, str]) -> None:
    ended = demo("--base-url", engine[1])
    assert ended.returncode == 1
    assert "is not TITO" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_server_that_wants_its_token_is_one_clear_line(engine: tuple[DemoEngine, str], db: None) -> None:
    secured = {"TITO_AUTH": "token", "TITO_ADMIN_TOKEN": "open-sesame"}
    with running_server({"TITO_BACKEND": "demo", "TITO_BACKEND_URL": engine[1], **secured}) as base:
        refused = demo("--sessions", "2", "--base-url", base)
        assert refused.returncode == 1
        assert "TITO_ADMIN_TOKEN" in refused.stderr
        assert refused.stderr.count("\n") == 1
        assert demo("--sessions", "2", "--base-url", base, **secured).returncode == 0


@pytest.mark.parametrize("options", [("--sessions", "0"), ("--concurrency", "-1"), ("--sessions", "many")])
def test_nonsense_options_are_refused(options: tuple[str, str]) -> None:
    ended = demo(*options)
    assert ended.returncode != 0
    assert "Traceback" not in ended.stderr
