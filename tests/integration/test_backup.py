"""What docs/operations.md says of backups, done."""

import subprocess

import psycopg
from django.db import connection

from sessions_app.models import Record
from tests.client import reply_of, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.test_cases import fed, says
from tests.integration.test_processes import environment
from tests.integration.web import database_url, web_processes
from tito_project.embedded.places import places_of
from tito_project.embedded.programs import postgres_programs

RESTORED = "tito_restored"


def program(name: str) -> str:
    from django.conf import settings

    return str(postgres_programs(places_of(settings.TITO.home)) / name)


def command(statement: str) -> None:
    """Outside of any transaction."""
    with psycopg.connect(database_url(), autocommit=True) as admin:
        admin.execute(statement)


def run(*words: str) -> None:
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_a_restored_dump_goes_on_where_it_was_taken(tmp_path) -> None:
    dump, source = tmp_path / "tito.dump", database_url()
    target = source.replace(f"/{connection.settings_dict['NAME']}", f"/{RESTORED}")
    with FakeEngine() as engine:
        surroundings = environment(tmp_path, engine)
        with web_processes(1, surroundings) as (server,):
            session = server.client.create()
            engine.script(Reply([1097, 1098, 2], message=says("ab")))
            first = reply_of(server.client.chat(session, [user("hello")]))
            run(program("pg_dump"), "--format=custom", "--no-owner", f"--file={dump}", source)
        served = [*fed(engine, 0), 1097, 1098, 2]
        command(f"DROP DATABASE IF EXISTS {RESTORED}")
        command(f"CREATE DATABASE {RESTORED} TEMPLATE template0")
        try:
            run(program("pg_restore"), "--no-owner", "--exit-on-error", f"--dbname={target}", str(dump))
            with web_processes(1, {**surroundings, "DATABASE_URL": target}) as (server,):
                engine.script(Reply([102, 2], message=says("ok")))
                answer = server.client.chat(session, [user("hello"), first, user("ok")])
                assert answer.headers["x-tito-parent"] == "0"
                assert fed(engine, 1)[: len(served)] == served
        finally:
            command(f"DROP DATABASE IF EXISTS {RESTORED} WITH (FORCE)")
    assert Record.objects.filter(session_id=session).count() == 1
