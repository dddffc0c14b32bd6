"""HTTP towards the server under test: sessions, turns with their latency and stages, samples."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from types import TracebackType
from typing import Any, Self

import aiohttp

_LAP = re.compile(r"(\w+);dur=([\d.]+)")
_STATEMENTS = re.compile(r"sql;desc=(\d+)")
_PATIENCE = aiohttp.ClientTimeout(total=300)
_JSON = {"content-type": "application/json"}
_TIMED = {**_JSON, "x-tito-timing": "1"}


class TurnFailed(Exception):
    """An answer other than 200."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One answered turn."""

    reply: bytes
    milliseconds: float
    """As the agent waited for it."""
    stages: Mapping[str, float]
    """Milliseconds by stage; empty unless they were asked for."""
    statements: int
    """SQL statements of the web process so far; 0 unless asked for."""


class Client:
    """Use as an async context manager."""

    def __init__(self, base: str) -> None:
        self._base = base

    async def __aenter__(self) -> Self:
        self._http = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=_PATIENCE)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.close()

    async def create(self, **options: Any) -> str:
        """A new session's id."""
        async with self._http.post(f"{self._base}/sessions", json=options) as reply:
            if reply.status != 200:
                raise TurnFailed(await reply.text())
            session: str = (await reply.json())["session_id"]
            return session

    async def turn(self, session: str, body: bytes, *, timed: bool = False) -> Turn:
        """One chat turn. Raises TurnFailed."""
        url = f"{self._base}/sessions/{session}/v1/chat/completions"
        started = perf_counter()
        async with self._http.post(url, data=body, headers=_TIMED if timed else _JSON) as reply:
            raw = await reply.read()
        waited = (perf_counter() - started) * 1000
        if reply.status != 200:
            raise TurnFailed(f"{reply.status}: {raw[:200]!r}")
        told = reply.headers.get("server-timing", "")
        statements = _STATEMENTS.search(told)
        stages = {stage: float(spent) for stage, spent in _LAP.findall(told)}
        return Turn(raw, waited, stages, int(statements[1]) if statements else 0)

    async def tell(self, url: str, text: str) -> None:
        """Switch something at another server, such as the engine."""
        async with self._http.post(url, data=text) as reply:
            reply.raise_for_status()

    async def samples(self, session: str) -> float:
        """Milliseconds until a session's samples were there."""
        started = perf_counter()
        async with self._http.post(f"{self._base}/sessions/{session}/samples", json={}) as reply:
            body = await reply.read()
        if reply.status != 200:
            raise TurnFailed(f"{reply.status}: {body[:200]!r}")
        return (perf_counter() - started) * 1000
