"""Turns of a paused profile wait, at most so many and so long; one poll serves all of them."""

import asyncio
from collections import Counter

import pytest

from sessions_app.errors import Paused
from sessions_app.turns import pausing
from sessions_app.turns.pausing import WaitingRoom


class Profiles:
    """Says which profiles are paused, and counts how often it was asked."""

    def __init__(self, *paused: str) -> None:
        self.paused = set(paused)
        self.asked: Counter[str] = Counter()

    async def is_paused(self, name: str) -> bool:
        self.asked[name] += 1
        return name in self.paused


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pausing, "_POLL_S", 0.001)


async def waiting(room: WaitingRoom, count: int, profile: str = "p") -> list["asyncio.Task[None]"]:
    tasks = [asyncio.create_task(room.wait(profile)) for _ in range(count)]
    for _ in range(2):  # they ask for a poll, the poll begins
        await asyncio.sleep(0)
    return tasks


async def test_all_are_held_and_all_go_on() -> None:
    profiles = Profiles("p")
    room = WaitingRoom(profiles.is_paused, places=50, patience_s=60)
    tasks = await waiting(room, 50)
    await asyncio.sleep(0.02)
    assert room.waiting == 50
    assert not any(task.done() for task in tasks)
    profiles.paused.clear()
    await asyncio.gather(*tasks)
    assert room.waiting == 0


async def test_there_are_only_so_many_places() -> None:
    profiles = Profiles("p")
    room = WaitingRoom(profiles.is_paused, places=2, patience_s=60)
    tasks = await waiting(room, 2)
    with pytest.raises(Paused, match="too many"):
        await room.wait("p")
    tasks[0].cancel()
    await asyncio.gather(tasks[0], return_exceptions=True)
    tasks += await waiting(room, 1)
    assert room.waiting == 2
    profiles.paused.clear()
    await asyncio.gather(*tasks[1:])


async def test_nobody_waits_for_ever() -> None:
    room = WaitingRoom(Profiles("p").is_paused, places=2, patience_s=0.01)
    with pytest.raises(Paused, match="still paused"):
        await room.wait("p")
    assert room.waiting == 0


async def test_one_poll_serves_all_and_profiles_are_kept_apart() -> None:
    profiles = Profiles("p")
    room = WaitingRoom(profiles.is_paused, places=50, patience_s=60)
    tasks = await waiting(room, 40)
    assert profiles.asked["p"] == 1
    await room.wait("free")
    assert not any(task.done() for task in tasks)
    profiles.paused.clear()
    await asyncio.gather(*tasks)
