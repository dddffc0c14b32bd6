"""The renderer and the backend behind a profile's name, built once per process."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from sessions_app.backends.base import Backend
from sessions_app.errors import InvalidArgument
from sessions_app.rendering.protocol import Renderer
from sessions_app.turns.heads import HeadIndex

DEFAULT_PROFILE = "default"


@dataclass(frozen=True, slots=True)
class Profile:
    """What serving a model takes."""

    name: str
    renderer: Renderer
    backend: Backend
    heads: HeadIndex
    warnings: tuple[str, ...] = ()
    """What its renderer cannot do and its backend needs, one line each."""


Builder = Callable[[str], Profile | None]
"""Builds a profile by name (it may take seconds and runs in a thread); None when there is none of that
name.
"""


class Profiles:
    """Profiles of this process. Building is slow and done at most once at a time per name."""

    def __init__(self, build: Builder) -> None:
        self._build = build
        self._built: dict[str, Profile] = {}
        self._lock = asyncio.Lock()

    async def get(self, name: str) -> Profile:
        """A profile, its backend started. Raises InvalidArgument for a name that does not exist."""
        profile = self._built.get(name)
        if profile is not None:
            return profile
        async with self._lock:
            if name not in self._built:
                self._built[name] = await self._start(name)
            return self._built[name]

    async def _start(self, name: str) -> Profile:
        profile = await asyncio.to_thread(self._build, name)
        if profile is None:
            raise InvalidArgument(f"profile {name!r} does not exist")
        await profile.backend.start()
        return profile

    async def close(self) -> None:
        """Close every backend."""
        for profile in self._built.values():
            await profile.backend.close()
        self._built.clear()
