"""Whether small turns wait while first turns of 100k tokens arrive."""

import asyncio
from collections.abc import Mapping
from time import perf_counter
from typing import Any

import numpy as np

from sessions_app.bench.rig import Agent, Rig
from sessions_app.bench.sizes import Sizes

_AGENTS = 4
_LONG = 100_000
_PAUSE_S = 0.5
"""Between one long first turn and the next."""
_CONVERSATION = 50


async def measure(rig: Rig, sizes: Sizes) -> Mapping[str, Any]:
    """See module."""
    await _long_turn(rig)
    without = await _small_turns(rig, sizes.stall_s)
    arrived: list[float] = []
    long = asyncio.create_task(_long_turns(rig, arrived))
    beside = await _small_turns(rig, sizes.stall_s)
    long.cancel()
    await asyncio.wait({long})
    return {
        "small_turns_p99_ms": {"without": _p99(without), "beside_100k_first_turns": _p99(beside)},
        "small_turns_p99_ratio": round(_p99(beside) / _p99(without), 2),
        "first_turns_100k_arrived": len(arrived),
    }


async def _small_turns(rig: Rig, seconds: float) -> list[float]:
    """Latencies of some agents for a while."""
    until = perf_counter() + seconds
    waited = await asyncio.gather(*(_turns_until(rig, until) for _ in range(_AGENTS)))
    return [each for one in waited for each in one]


async def _turns_until(rig: Rig, until: float) -> list[float]:
    waited: list[float] = []
    agent: Agent = await rig.agent(64)
    while perf_counter() < until:
        if len(waited) % _CONVERSATION == _CONVERSATION - 1:
            agent = await rig.agent(64)
        waited.append((await agent.turn(64)).milliseconds)
    return waited


async def _long_turns(rig: Rig, arrived: list[float]) -> None:
    while True:
        arrived.append(await _long_turn(rig))
        await asyncio.sleep(_PAUSE_S)


async def _long_turn(rig: Rig) -> float:
    return (await (await rig.agent(64)).turn(_LONG)).milliseconds


def _p99(waited: list[float]) -> float:
    return round(float(np.percentile(waited, 99)), 1)
