"""`up` as its user meets it: started in an empty folder, stopped, killed, started again."""

import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from celery import Celery
from django.conf import settings

from tests.project.browser import Browser
from tests.project.homes import temporary_folder
from tests.project.running_up import MANAGE, Up, clean_environment, manage
from tito_project.addresses import broker_url, embedded_redis_url
from tito_project.embedded.places import places_of

pytestmark = pytest.mark.slow


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty working folder."""
    with temporary_folder() as made:
        yield made
        shutil.rmtree(places_of(made / ".tito").data, ignore_errors=True)


@pytest.fixture(scope="module")
def shared() -> Iterator[Up]:
    """One that runs for several tests, which leave it healthy."""
    with temporary_folder() as made, Up(made) as up:
        yield up.ready()


def test_from_an_empty_folder_to_a_second_day(folder: Path) -> None:
    with Up(folder) as first:
        first.ready()
        assert first.healthy()
        password = re.findall(r"password (\S+)", first.text())[0]
        stored = first.admin_hash()
        assert password not in stored
        assert first.end(signal.SIGTERM) == 0
        assert first.alive() == []

    with Up(folder) as again:
        again.ready()
        assert password not in again.text()
        assert "user admin" not in again.text()
        assert again.admin_hash() == stored
        assert again.end(signal.SIGINT) == 0
        assert again.alive() == []


def test_a_second_up_on_the_same_home_is_refused_and_harms_nothing(shared: Up) -> None:
    second = manage(shared.folder, "up", "--port", "0")
    assert second.returncode == 1
    assert f"another `up` (pid {shared.process.pid})" in second.stderr
    assert shared.healthy()


def test_the_printed_program_works_as_it_is(shared: Up) -> None:
    run = _run_snippet(shared)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip()
    logs = {log.name: log.read_text() for log in (shared.home / "logs").iterdir()}
    assert "web.log" in logs
    assert [name for name, text in logs.items() if "17 * 23" in text] == []


def test_the_printed_password_opens_the_admin_and_its_styles_are_there(shared: Up) -> None:
    browser = Browser(shared.base())
    page = browser.get("/admin/login/?next=/admin/")
    styles = re.findall(r'href="(/static/[^"]+\.css)"', page)
    assert styles
    assert all(browser.get(style) for style in styles)
    password = re.findall(r"password (\S+)", shared.text())[0]
    token = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)[0]
    form = {"username": "admin", "password": password, "csrfmiddlewaretoken": token, "next": "/admin/"}
    assert "logout" in browser.post("/admin/login/", form)


def test_the_worker_takes_messages(shared: Up) -> None:
    broker = broker_url(embedded_redis_url(places_of(shared.home)))
    with Celery(broker=broker) as client:
        # Who is not connected yet when a ping is sent never hears it, and a worker starts beside the server.
        pings = (client.control.ping(timeout=1, limit=1) for _ in range(30))
        answers = next(filter(None, pings), [])
    assert [list(answer.values()) for answer in answers] == [[{"ok": "pong"}]]


def test_a_killed_child_comes_back_and_the_screen_says_so(shared: Up) -> None:
    for command, name in (("worker", "worker"), ("demo_engine", "engine"), ("serve", "web")):
        killed = shared.child(command)
        killed.kill()
        shared.wait_for(f"{name} ended (killed by SIGKILL): restarting it")
        _wait_until_another(shared, command, killed.pid)
    assert shared.healthy()


def _wait_until_another(up: Up, command: str, pid: int) -> None:
    deadline = time.monotonic() + 20
    while not any(command in found.cmdline() and found.pid != pid for found in up.alive()):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_orphans_of_a_killed_up_are_stopped_by_the_next(folder: Path) -> None:
    with Up(folder) as killed:
        killed.ready()
        stored = killed.admin_hash()
        orphans = killed.alive()
        killed.end(signal.SIGKILL)
        assert len(orphans) >= 5

        with Up(folder) as next_one:
            next_one.ready()
            assert "stopped web, left behind" in next_one.text()
            assert not any(found.is_running() for found in orphans)
            assert next_one.admin_hash() == stored
            assert next_one.healthy()


def test_after_kill_9_of_everything_the_data_is_there(folder: Path) -> None:
    with Up(folder) as first:
        first.ready()
        stored = first.admin_hash()
        first.process.kill()
        first.kill_children()
    with Up(folder) as second:
        second.ready()
        assert second.admin_hash() == stored
        assert second.healthy()


def test_a_busy_port_is_one_clear_line_and_starts_nothing(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        run = manage(folder, "up", "--port", str(port))
    assert run.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in run.stderr
    assert len(run.stderr.strip().splitlines()) == 1
    assert run.stdout == ""
    assert not (folder / ".tito" / "data").exists()


def test_serve_alone_names_the_busy_port(folder: Path) -> None:
    given = {"DATABASE_URL": settings.DATABASE_URL, "REDIS_URL": settings.REDIS_URL}
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        run = manage(folder, "serve", "--port", str(port), **given)
    assert run.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in run.stderr


def test_with_given_services_none_is_embedded_and_a_token_is_made(folder: Path) -> None:
    environment = clean_environment(
        TITO_AUTH="token", DATABASE_URL=settings.DATABASE_URL, REDIS_URL=settings.REDIS_URL
    )
    with Up(folder, environment=environment) as up:
        up.ready()
        names = {found.name() for found in up.alive()}
        assert not any(name.startswith(("postgres", "valkey")) for name in names)
        assert not (folder / ".tito" / "data").exists()
        assert (up.home / "admin-token").read_text().strip() not in up.text()
        run = _run_snippet(up)
        assert run.returncode == 0, run.stderr
        assert up.end(signal.SIGTERM) == 0


def test_an_engine_that_does_not_answer_is_told_where_it_is_named(folder: Path) -> None:
    given = {"DATABASE_URL": settings.DATABASE_URL, "REDIS_URL": settings.REDIS_URL}
    engine = {"TITO_BACKEND": "sglang", "TITO_BACKEND_URL": "http://127.0.0.1:9"}
    with Up(folder, environment=clean_environment(**given, **engine)) as up:
        up.ready()
        assert "sglang at http://127.0.0.1:9\n            (not ready: no engine answers)\n" in up.text()


def _run_snippet(up: Up) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", up.snippet()]
    environment = clean_environment()
    return subprocess.run(command, cwd=up.folder, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"DATABASE_URL": "postgres://u:hidden@127.0.0.1:1/n"}, "DATABASE_URL"),
        ({"TITO_BIND": "0.0.0.0"}, "TITO_ALLOW_OPEN"),
        ({"TITO_PORT": "high"}, "TITO_PORT"),
        ({"TITO_HOME": "/dev/null"}, "TITO_HOME"),
    ],
)
def test_what_cannot_work_is_said_without_a_traceback(
    folder: Path, variables: dict[str, str], told: str
) -> None:
    run = manage(folder, "up", **{"TITO_PORT": "0", **variables})
    assert run.returncode == 1
    assert told in run.stderr
    assert "Traceback" not in run.stderr
    assert "hidden" not in run.stderr


@pytest.mark.parametrize("command", ["serve", "worker", "migrate"])
def test_parts_alone_without_services_say_what_to_do(folder: Path, command: str) -> None:
    run = manage(folder, command)
    assert run.returncode == 1
    assert "run `manage.py up`" in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="every other test here runs as an ordinary user already")
def test_as_an_ordinary_user(folder: Path) -> None:
    account = pwd.getpwnam("nobody")
    os.chown(folder, account.pw_uid, account.pw_gid)
    credentials = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    environment = clean_environment(HOME=str(folder), PYTHONPATH=sysconfig.get_path("purelib"))
    python = _python_for(credentials, environment)
    with Up(folder, python=(python,), environment=environment, credentials=credentials) as up:
        up.ready()
        assert up.healthy()
        assert {found.uids().real for found in up.alive()} == {account.pw_uid}
        assert up.home.stat().st_mode & 0o777 == 0o700
        assert up.end(signal.SIGTERM) == 0
        assert up.alive() == []


def _python_for(credentials: dict[str, object], environment: dict[str, str]) -> str:
    """An interpreter the account can run, which need not be ours (it may lie below /root)."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        command = [python, str(MANAGE), "up", "--help"]
        try:
            run = subprocess.run(command, cwd="/", env=environment, capture_output=True, **credentials)  # type: ignore[call-overload]
        except OSError:
            continue
        if run.returncode == 0:
            return python
    pytest.skip("no interpreter, packages and checkout that an ordinary user can reach")
