"""Leases of processes: who counts as dead, and what becomes of the requests they held."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from django.db import connection

from sessions_app.models import ModelProfile
from sessions_app.store import leases, records, sessions
from sessions_app.store.leases import Lease
from sessions_app.store.pool import Transaction
from sessions_app.store.values import Intent, NewSession, SessionSettings
from tests.store.test_parameters import database

pytestmark = pytest.mark.django_db
HOUR = 3600.0
DEAD, WITNESS = Lease(1, "one", "host", 11, 30.0), Lease(2, "two", "host", 22, 30.0)


class _Undo(Exception):
    pass


class World:
    """Leases alone in a transaction that never commits."""

    def __init__(self, db: Transaction, session: uuid.UUID) -> None:
        self.db, self.session = db, session

    async def lease(self, lease: Lease, *, renewed_s: float, since_s: float) -> None:
        """A lease last renewed so many seconds ago, and in time since so many."""
        await leases.renew(self.db, lease)
        await self.db.execute(
            "UPDATE sessions_app_processlease SET since = clock_timestamp() - make_interval(secs => %s), "
            "renewed_at = clock_timestamp() - make_interval(secs => %s), "
            "expires_at = clock_timestamp() + make_interval(secs => %s) WHERE id = %s",
            (since_s, renewed_s, lease.ttl_s - renewed_s, lease.id),
        )

    async def intent(self, lease: Lease | None) -> records.Written:
        """A request that this process holds."""
        return await records.insert(self.db, intent_of(self.session, lease), with_head=False)

    async def state(self, written: records.Written) -> str:
        """What a record says now."""
        row = await self.db.fetch_one(
            "SELECT state FROM sessions_app_record WHERE session_id = %s AND id = %s",
            (self.session, written.id),
        )
        assert row is not None
        return str(row[0])

    async def since_s(self, lease: Lease) -> float | None:
        """For how long a lease has been renewed in time; None: it is gone."""
        row = await self.db.fetch_one(
            "SELECT extract(epoch FROM clock_timestamp() - since)::float8 FROM sessions_app_processlease "
            "WHERE id = %s",
            (lease.id,),
        )
        return None if row is None else float(row[0])


def intent_of(session: uuid.UUID, lease: Lease | None) -> Intent:
    texts = dict.fromkeys(("raw_reply", "raw_leading", "raw_tail", "weight_version_dispatch"))
    counts = dict.fromkeys(("prompt_tokens", "reused_tokens", "added_tokens", "prepare_ms"))
    return Intent(
        session_id=session,
        state="intent",
        protocol="openai",
        path="/v1/chat/completions",
        stream=False,
        parent_seq=None,
        attach_kind=None,
        cause=None,
        retry_of=None,
        idempotency_key=None,
        request_hash=b"hash",
        head=None,
        request_params=None,
        message_count=0,
        raw_base=0,
        process="one",
        lease=lease.id if lease else None,
        arrived_at=datetime.now(UTC),
        **texts,
        **counts,
    )


def new_session() -> NewSession:
    settings = SessionSettings(
        uuid.uuid4(), "default", "tree", "reset", "refuse", "resample", "strict", True, None, {}, None, None,
        None, None, None,
    )  # fmt: skip
    return NewSession(settings, None, {}, None, None)


def _store_default_profile() -> None:
    try:
        ModelProfile.objects.get_or_create(name="default")
    finally:
        connection.close()


async def _tell(story: Callable[[World], Awaitable[None]]) -> None:
    await asyncio.to_thread(_store_default_profile)
    async with database() as db, db.transaction() as transaction:
        new = new_session()
        await transaction.execute("DELETE FROM sessions_app_processlease", ())
        assert await sessions.create(transaction, new)
        await story(World(transaction, new.settings.id))
        raise _Undo


def told(story: Callable[[World], Awaitable[None]]) -> None:
    """Run a story and undo it."""
    with pytest.raises(_Undo):
        asyncio.run(_tell(story))


def test_requests_of_a_process_whose_lease_ran_out_are_given_up() -> None:
    async def story(world: World) -> None:
        await world.lease(DEAD, renewed_s=31, since_s=HOUR)
        await world.lease(WITNESS, renewed_s=1, since_s=HOUR)
        held, others, unleased = [await world.intent(lease) for lease in (DEAD, WITNESS, None)]
        await leases.give_up(world.db, HOUR)
        assert [await world.state(one) for one in (held, others, unleased)] == ["lost", "intent", "intent"]
        await leases.forget(world.db)
        assert await world.since_s(DEAD) is None
        assert await world.since_s(WITNESS) is not None

    told(story)


def test_a_slow_process_is_left_alone_until_its_lease_has_run_out() -> None:
    async def story(world: World) -> None:
        await world.lease(DEAD, renewed_s=29, since_s=HOUR)
        await world.lease(WITNESS, renewed_s=1, since_s=HOUR)
        held = await world.intent(DEAD)
        await leases.give_up(world.db, HOUR)
        assert await world.state(held) == "intent"

    told(story)


def test_a_database_that_was_away_proves_nothing_about_anybody() -> None:
    async def story(world: World) -> None:
        for lease in (DEAD, WITNESS):
            await world.lease(lease, renewed_s=60, since_s=HOUR)
        held = await world.intent(DEAD)
        await leases.renew(world.db, WITNESS)  # the first that comes back
        since = await world.since_s(WITNESS)
        assert since is not None
        assert since < 10, "it cannot tell what happened while it was away itself"
        await leases.give_up(world.db, HOUR)
        await leases.forget(world.db)
        assert await world.state(held) == "intent"
        await leases.renew(world.db, DEAD)
        assert (await world.intent(DEAD)).leased

    told(story)


def test_a_process_that_just_began_cannot_tell_who_is_dead() -> None:
    async def story(world: World) -> None:
        await world.lease(DEAD, renewed_s=HOUR, since_s=2 * HOUR)
        held = await world.intent(DEAD)
        await leases.renew(world.db, WITNESS)
        await leases.give_up(world.db, HOUR)
        assert await world.state(held) == "intent"
        await world.lease(WITNESS, renewed_s=1, since_s=31)
        await leases.give_up(world.db, HOUR)
        assert await world.state(held) == "lost"

    told(story)


def test_a_renewal_in_time_keeps_the_stretch() -> None:
    async def story(world: World) -> None:
        await world.lease(WITNESS, renewed_s=14, since_s=HOUR)
        await leases.renew(world.db, WITNESS)
        since = await world.since_s(WITNESS)
        assert since is not None
        assert since > HOUR - 1

    told(story)


def test_a_clock_that_was_set_back_begins_the_stretch_anew() -> None:
    async def story(world: World) -> None:
        await world.lease(WITNESS, renewed_s=-HOUR, since_s=-HOUR)
        await leases.renew(world.db, WITNESS)
        since = await world.since_s(WITNESS)
        assert since is not None
        assert 0 <= since < 10

    told(story)


def test_a_process_that_was_given_up_and_goes_on_is_told_so_with_its_next_request() -> None:
    async def story(world: World) -> None:
        await world.lease(DEAD, renewed_s=31, since_s=HOUR)
        assert not (await world.intent(DEAD)).leased
        await leases.renew(world.db, DEAD)
        again = await world.intent(DEAD)
        assert again.leased
        await world.lease(WITNESS, renewed_s=1, since_s=HOUR)
        await leases.give_up(world.db, HOUR)
        assert await world.state(again) == "intent"

    told(story)


def test_what_a_process_leaves_at_its_end_is_given_up_at_once_even_by_one_that_just_began() -> None:
    async def story(world: World) -> None:
        await world.lease(DEAD, renewed_s=1, since_s=HOUR)
        held = await world.intent(DEAD)
        await leases.leave(world.db, DEAD.id)
        await leases.renew(world.db, WITNESS)
        await asyncio.sleep(0.001)
        await leases.give_up(world.db, HOUR)
        assert await world.state(held) == "lost"

    told(story)


def test_a_process_that_leaves_nothing_is_gone() -> None:
    async def story(world: World) -> None:
        await leases.renew(world.db, DEAD)
        await leases.leave(world.db, DEAD.id)
        assert await world.since_s(DEAD) is None

    told(story)


def test_age_alone_is_enough_whoever_holds_it() -> None:
    async def story(world: World) -> None:
        await leases.renew(world.db, WITNESS)
        old = replace(intent_of(world.session, WITNESS), arrived_at=datetime(2020, 1, 1, tzinfo=UTC))
        held = await records.insert(world.db, old, with_head=False)
        await leases.give_up(world.db, HOUR)
        assert await world.state(held) == "lost"

    told(story)
