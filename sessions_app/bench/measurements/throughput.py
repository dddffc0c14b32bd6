"""What a turn of 64 + 64 tokens costs, and how long agents wait for it, by agents at a time."""

from collections.abc import Mapping
from typing import Any

from sessions_app.bench.load import Load, Outcome, run
from sessions_app.bench.rig import Rig
from sessions_app.bench.sizes import Sizes

CONVERSATION = 50
"""Turns of one agent; one that is to do more begins anew."""
_WARM_UP = Load(agents=16, turns=20)


async def measure(rig: Rig, sizes: Sizes) -> Mapping[str, Any]:
    """See module."""
    await run(rig, _WARM_UP)
    return by_agents({agents: await _at(rig, agents, turns) for agents, turns in sizes.concurrency.items()})


async def _at(rig: Rig, agents: int, turns: int) -> Outcome:
    load = Load(agents, min(turns, CONVERSATION), conversations=max(1, turns // CONVERSATION))
    return await run(rig, load)


def by_agents(outcomes: Mapping[int, Outcome]) -> dict[str, Any]:
    """Every figure of some outcomes, by agents at a time."""
    return {
        "cpu_ms_per_turn": {str(n): round(each.web_cpu_ms, 3) for n, each in outcomes.items()},
        "pg_cpu_ms_per_turn": {
            str(n): None if each.postgres_cpu_ms is None else round(each.postgres_cpu_ms, 3)
            for n, each in outcomes.items()
        },
        "turns_per_second": {str(n): round(each.per_second, 1) for n, each in outcomes.items()},
        "p50_ms": {str(n): round(each.percentile(50), 2) for n, each in outcomes.items()},
        "p99_ms": {str(n): round(each.percentile(99), 2) for n, each in outcomes.items()},
    }
