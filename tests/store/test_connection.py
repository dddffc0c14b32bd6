"""Statements without cursors: errors, big values, cancelling, dead servers, transactions beside them."""

import asyncio
from typing import Any

import psycopg
import pytest

from sessions_app.errors import NotReady
from sessions_app.store.connection import StatementConnection
from sessions_app.store.pool import Database
from tests.store.test_parameters import database

pytestmark = pytest.mark.django_db


def run(work: Any) -> Any:
    return asyncio.run(work())


def test_an_error_of_the_server_is_psycopgs_own_and_the_connection_goes_on() -> None:
    async def work() -> None:
        async with database() as db:
            with pytest.raises(psycopg.errors.DivisionByZero):
                await db.fetch_one("SELECT 1 / %s::int", (0,))
            with pytest.raises(psycopg.errors.SyntaxError):
                await db.fetch_one("SELEC 1", ())
            assert await db.fetch_one("SELECT 1 / %s::int", (1,)) == (1,)

    run(work)


def test_a_statement_that_fails_as_it_commits_has_failed() -> None:
    async def work() -> None:
        async with database() as db:
            await db.execute("CREATE TEMP TABLE once (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)", ())
            insert = "INSERT INTO once SELECT 1 FROM generate_series(1, %s) RETURNING n"
            with pytest.raises(psycopg.errors.UniqueViolation):
                await db.fetch_all(insert, (2,))
            assert await db.fetch_all("SELECT n FROM once WHERE n = %s", (1,)) == []
            assert await db.fetch_all(insert, (1,)) == [(1,)]

    run(work)


def test_a_full_disk_is_a_database_that_is_not_ready_and_may_be_tried_again() -> None:
    full = "DO $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$"

    async def work() -> None:
        async with database() as db:
            with pytest.raises(NotReady):
                await db.execute(full, ())
            async with db.transaction() as transaction:
                with pytest.raises(NotReady):
                    await transaction.execute(full, ())
            assert await db.fetch_one("SELECT 1", ()) == (1,)

    run(work)


def test_values_larger_than_the_socket_takes_at_once() -> None:
    async def work() -> None:
        async with database() as db:
            value = b"x" * 20_000_000
            row = await db.fetch_one("SELECT %s::bytea", (value,))
            assert row is not None
            assert row[0] == value

    run(work)


def test_many_statements_share_few_connections() -> None:
    async def work() -> None:
        async with database(size=3) as db:
            rows = await asyncio.gather(*(db.fetch_one("SELECT %s::int", (n,)) for n in range(200)))
            assert [row[0] for row in rows] == list(range(200))

    run(work)


def test_a_cancelled_statement_leaves_no_connection_in_the_middle_of_it() -> None:
    async def work() -> None:
        async with database() as db:
            slow = asyncio.create_task(db.fetch_one("SELECT pg_sleep(5)", ()))
            await asyncio.sleep(0.1)
            slow.cancel()
            with pytest.raises(asyncio.CancelledError):
                await slow
            assert await asyncio.wait_for(db.fetch_one("SELECT 2", ()), 3) == (2,)

    run(work)


def test_a_connection_that_died_while_idle_is_noticed_by_the_next_statement_only() -> None:
    async def work() -> None:
        async with database() as db, db._connection() as connection:
            assert await connection.run(b"SELECT 1", ()) == [(1,)]
            await end(connection)
            await asyncio.sleep(0.1)
            with pytest.raises(psycopg.OperationalError):
                await connection.run(b"SELECT 1", ())

    run(work)


async def end(connection: StatementConnection) -> None:
    pid = connection.info.backend_pid
    async with database() as other:
        await other.fetch_one("SELECT pg_terminate_backend(%s::int)", (pid,))


def test_statements_and_transactions_take_turns_on_one_connection() -> None:
    async def work() -> None:
        async with database() as db:
            for number in range(3):
                await db.fetch_one("SELECT 1", ())
                async with db.transaction() as transaction:
                    await transaction.execute(
                        "CREATE TEMP TABLE IF NOT EXISTS seen (n int) ON COMMIT DROP", ()
                    )
                    await transaction.execute("INSERT INTO seen VALUES (%s)", (number,))
                    assert await transaction.fetch_all("SELECT n FROM seen", ()) == [(number,)]

    run(work)


def test_a_failed_transaction_is_rolled_back() -> None:
    async def work() -> None:
        async with database() as db:
            with pytest.raises(psycopg.errors.DivisionByZero):
                await half_made(db)
            assert await db.fetch_one("SELECT to_regclass('half_made')", ()) == (None,)

    run(work)


async def half_made(db: Database) -> None:
    async with db.transaction() as transaction:
        await transaction.execute("CREATE TABLE half_made (n int)", ())
        await transaction.execute("SELECT 1 / 0", ())


def test_a_statement_is_prepared_once_for_each_connection() -> None:
    async def work() -> None:
        async with database() as db:
            for number in (1, 40_000, 2**31 - 1):
                await db.fetch_one("SELECT %s::int", (number,))
            assert await prepared(db) == 1

    run(work)


async def prepared(db: Database) -> int:
    row = await db.fetch_one(
        "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE %s", ("SELECT $1::int",)
    )
    assert row is not None
    return int(row[0])
