"""Holding new generations while an engine's weights are updated.

The profile's row says whether it is paused, so every process sees the same. Turns that find it paused wait
here; one poll serves all of them. Invariant: a held turn is prepared anew when it goes on, so that it
records the weights it is really dispatched to.
"""

import asyncio
from collections.abc import Awaitable, Callable

from sessions_app.errors import Paused

_POLL_S = 0.2

IsPaused = Callable[[str], Awaitable[bool]]


class WaitingRoom:
    """Where turns of paused profiles wait, at most so many and so long."""

    def __init__(self, is_paused: IsPaused, *, places: int, patience_s: float) -> None:
        self._is_paused = is_paused
        self._places = places
        self._patience_s = patience_s
        self._waiting = 0
        self._polls: dict[str, asyncio.Task[None]] = {}

    @property
    def waiting(self) -> int:
        """Turns held now."""
        return self._waiting

    async def wait(self, profile: str) -> None:
        """Until the profile is resumed. Raises Paused when there is no place, or it takes too long."""
        if self._waiting >= self._places:
            raise Paused("generation is paused for a weight update and too many requests wait already")
        self._waiting += 1
        try:
            async with asyncio.timeout(self._patience_s):
                await asyncio.shield(self._poll(profile))
        except TimeoutError:
            raise Paused("generation is still paused for a weight update") from None
        finally:
            self._waiting -= 1

    def _poll(self, profile: str) -> "asyncio.Task[None]":
        task = self._polls.get(profile)
        if task is None or task.done():
            task = self._polls[profile] = asyncio.create_task(self._resumed(profile))
        return task

    async def _resumed(self, profile: str) -> None:
        while await self._is_paused(profile):  # noqa: ASYNC110  (the flag is a row, not an event)
            await asyncio.sleep(_POLL_S)
