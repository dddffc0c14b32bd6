"""One write of a session at a time; other sessions do not wait for it."""

import asyncio
from uuid import uuid4

import pytest

from sessions_app.errors import NotReady
from sessions_app.turns.turnstile import Turnstile

ONE, OTHER = uuid4(), uuid4()


def test_those_of_one_session_come_one_after_the_other() -> None:
    turnstile, inside, most = Turnstile(), 0, 0

    async def passing() -> None:
        nonlocal inside, most
        async with turnstile.only(ONE, 10):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    async def crowd() -> None:
        await asyncio.gather(*(passing() for _ in range(20)))

    asyncio.run(crowd())
    assert most == 1
    assert not turnstile._locks
    assert not turnstile._users


def test_another_session_passes_meanwhile_and_who_waits_too_long_is_told() -> None:
    async def story() -> None:
        turnstile = Turnstile()
        async with turnstile.only(ONE, 10):
            async with turnstile.only(OTHER, 0):
                pass
            with pytest.raises(NotReady):
                async with turnstile.only(ONE, 0.01):
                    pass
        async with turnstile.only(ONE, 0):
            assert list(turnstile._locks) == [ONE]

    asyncio.run(story())


def test_who_leaves_while_it_waits_holds_up_nobody() -> None:
    async def story() -> None:
        turnstile = Turnstile()

        async def passing() -> None:
            async with turnstile.only(ONE, 10):
                pass

        async with turnstile.only(ONE, 10):
            waits = asyncio.create_task(passing())
            await asyncio.sleep(0)
            waits.cancel()
            await asyncio.gather(waits, return_exceptions=True)
        await asyncio.wait_for(passing(), 5)
        assert not turnstile._locks

    asyncio.run(story())
