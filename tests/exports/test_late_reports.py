"""A reward or a finish that is reported while rows go out: whichever commits first, the rows end up stale."""

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest

from sessions_app.api.wiring import conninfo
from sessions_app.store.pool import Database
from tests.client import reply_of, user
from tests.exports.exporting import linear
from tests.fakes.engine import Reply
from tests.integration.test_cases import says
from trainer_export import handed
from trainer_export.forests.load import Wanted, load_sessions
from trainer_export.handed import Handed
from trainer_export.jobs.running import on_loop
from trainer_export.lifecycle import finishing, rewards
from trainer_export.models import Sample

Report = Callable[[Database, UUID], Awaitable[object]]


def _reward(db: Database, session: UUID) -> Awaitable[object]:
    return rewards.report(db, session, [rewards.RewardReport(1.0)])


def _finish(db: Database, session: UUID) -> Awaitable[object]:
    return finishing.finish(db, session, finishing.Finish(metadata='{"k":1}'))


REPORTS = [pytest.param(_reward, "reward", id="reward"), pytest.param(_finish, "finish", id="finish")]


async def _row(db: Database, session: UUID) -> Handed:
    """A row of the session as it is known now."""
    (stored,) = await load_sessions(db, [session], Wanted())
    return Handed(session, f"{session.hex}:0", 0, stored.known, session.hex, None, "completed", 3, 2, None)


async def _enter(db: Database, row: Handed) -> None:
    async with db.transaction() as transaction:
        await handed.enter(transaction, [row], "http")


async def _done_or_waiting(db: Database, task: asyncio.Task[object]) -> None:
    """Until a task has ended or one of its statements waits for a lock."""
    query = (
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() "
        "AND wait_event_type = 'Lock' AND query LIKE '%%sessions_app_session%%'"
    )
    while not task.done() and await db.fetch_one(query, ()) is None:
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(("report", "reason"), REPORTS)
def test_a_report_that_is_not_committed_while_rows_go_out(toy, monkeypatch, report: Report, reason: str):
    """It has looked for rows to mark and found none; they come before it commits."""
    session = UUID(linear(*toy))

    async def interleaved(db: Database) -> None:
        marked, go_on = asyncio.Event(), asyncio.Event()
        mark = handed.mark_stale

        async def held_open(*arguments: object) -> None:
            await mark(*arguments)
            marked.set()
            await go_on.wait()

        for module in (rewards, finishing):
            monkeypatch.setattr(module, "mark_stale", held_open)
        row = await _row(db, session)
        reporting = asyncio.ensure_future(report(db, session))
        await marked.wait()
        entering = asyncio.ensure_future(_enter(db, row))
        await _done_or_waiting(db, entering)
        go_on.set()
        await asyncio.gather(reporting, entering)

    on_loop(conninfo(), interleaved)
    assert Sample.objects.get(session_id=session).stale_reason == reason


@pytest.mark.parametrize(("report", "reason"), REPORTS)
def test_rows_that_are_not_committed_while_a_report_comes(toy, report: Report, reason: str):
    session = UUID(linear(*toy))

    async def interleaved(db: Database) -> None:
        row = await _row(db, session)
        async with db.transaction() as transaction:
            await handed.enter(transaction, [row], "http")
            reporting = asyncio.ensure_future(report(db, session))
            await _done_or_waiting(db, reporting)
        await reporting

    on_loop(conninfo(), interleaved)
    assert Sample.objects.get(session_id=session).stale_reason == reason


@pytest.mark.parametrize(("report", "reason"), REPORTS)
def test_a_report_between_reading_and_entering(toy, report: Report, reason: str):
    session = UUID(linear(*toy))

    async def interleaved(db: Database) -> None:
        row = await _row(db, session)
        await report(db, session)
        await _enter(db, row)
        stale = await db.fetch_one(
            "SELECT stale_reason FROM trainer_export_sample WHERE session_id = %s", (session,)
        )
        assert stale == (reason,)
        await _enter(db, await _row(db, session))

    on_loop(conninfo(), interleaved)
    assert Sample.objects.get(session_id=session).stale_reason is None


def test_no_turn_waits_for_rows_that_go_out(toy):
    client, engine = toy
    session = UUID(client.create().replace("-", ""))
    engine.script(Reply([100, 2], message=says("ab")))
    history = [user("hello"), reply_of(client.chat(session.hex, [user("hello")])), user("ok")]

    async def interleaved(db: Database) -> str:
        row = await _row(db, session)
        async with db.transaction() as transaction:
            await handed.enter(transaction, [row], "http")
            engine.script(Reply([100, 2], message=says("ab")))
            answer = await asyncio.to_thread(client.chat, session.hex, history)
            recorded: str = answer.headers["x-tito-recorded"]
            return recorded

    assert on_loop(conninfo(), interleaved) == "true"
