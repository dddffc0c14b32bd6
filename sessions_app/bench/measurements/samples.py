"""How long the samples of a 50k-token session take, and whether chat turns wait for them."""

import asyncio
from collections.abc import Mapping
from statistics import median
from typing import Any

import numpy as np

from sessions_app.bench.rig import Agent, Rig
from sessions_app.bench.sizes import Sizes

_TURNS, _PROMPT, _COMPLETION = 50, 500, 500


async def measure(rig: Rig, sizes: Sizes) -> Mapping[str, Any]:
    """See module."""
    long = [await _long(rig) for _ in range(sizes.samples_sessions)]
    small = await rig.agent(64)
    alone = await _turns_until(small, asyncio.create_task(asyncio.sleep(1.0)))
    took: list[float] = []

    async def ask_for_all() -> None:
        for agent in long:
            took.append(await rig.client.samples(agent.session))

    beside = await _turns_until(await rig.agent(64), asyncio.create_task(ask_for_all()))
    return {
        "samples_50k_ms": round(median(took), 1),
        "samples_50k_chat_p50_ms": {"alone": _p50(alone), "beside": _p50(beside)},
        "samples_50k_chat_max_ms": {"alone": round(max(alone), 1), "beside": round(max(beside), 1)},
    }


async def _long(rig: Rig) -> Agent:
    agent = await rig.agent(_COMPLETION)
    for _ in range(_TURNS):
        await agent.turn(_PROMPT)
    return agent


async def _turns_until(agent: Agent, end: "asyncio.Task[None]") -> list[float]:
    """Small turns one after the other until something has ended, at least one."""
    waited = [(await agent.turn(64)).milliseconds]
    while not end.done():
        waited.append((await agent.turn(64)).milliseconds)
    await end
    return waited


def _p50(waited: list[float]) -> float:
    return round(float(np.percentile(waited, 50)), 1)
