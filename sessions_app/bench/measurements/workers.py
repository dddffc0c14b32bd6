"""The same load on several web processes."""

from collections.abc import Mapping
from typing import Any

from sessions_app.bench.load import Load, run
from sessions_app.bench.measurements.throughput import by_agents
from sessions_app.bench.rig import Rig, rigged
from sessions_app.bench.sizes import Sizes

_AGENTS, _TURNS = 64, 25


async def measure(rig: Rig, sizes: Sizes) -> Mapping[str, Any]:
    """See module."""
    found = {}
    for workers in sizes.workers:
        async with rigged(rig.installation, rig.words, workers) as several:
            await run(several, Load(_AGENTS, 5))
            found[str(workers)] = by_agents({_AGENTS: await run(several, Load(_AGENTS, _TURNS))})
    return {"web_processes": found} if found else {}
