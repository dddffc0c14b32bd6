"""Many generations of 5 s at a time on one web process."""

import asyncio
from collections.abc import Mapping
from time import perf_counter
from typing import Any

import aiohttp

from sessions_app.bench import meters
from sessions_app.bench.client import TurnFailed
from sessions_app.bench.rig import Agent, Rig
from sessions_app.bench.sizes import Sizes

_GENERATION_MS = 5_000
_LOOK_S = 0.25


async def measure(rig: Rig, sizes: Sizes) -> Mapping[str, Any]:
    """See module."""
    return {f"in_flight_{count}": await _at(rig, count) for count in sizes.in_flight}


async def _at(rig: Rig, count: int) -> dict[str, Any]:
    agents = [await rig.agent(64) for _ in range(count)]
    await rig.engine_latency(_GENERATION_MS)
    started = perf_counter()
    try:
        work = asyncio.gather(*map(_answered, agents))
        seen = await _watched(rig, work)
        answered = await work
    finally:
        await rig.engine_latency(0)
    return {
        "answered": sum(answered),
        "failed": count - sum(answered),
        "seconds": round(perf_counter() - started, 2),
        **seen,
    }


async def _answered(agent: Agent) -> bool:
    try:
        await agent.turn(64)
    except (TurnFailed, aiohttp.ClientError, TimeoutError):
        return False
    return True


async def _watched(rig: Rig, work: "asyncio.Future[list[bool]]") -> dict[str, Any]:
    """The most threads, connections and memory while the generations run."""
    threads, connections, rss = 0, 0, 0.0
    while not work.done():
        threads = max(threads, meters.threads(rig.processes))
        connections = max(connections, await asyncio.to_thread(rig.tables.connections))
        rss = max(rss, meters.rss_mb(rig.processes))
        await asyncio.sleep(_LOOK_S)
    return {"threads": threads, "connections": connections, "rss_mb": round(rss, 1)}
