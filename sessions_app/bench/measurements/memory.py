"""Whether memory grows with the turns served."""

from collections.abc import Mapping
from typing import Any

from sessions_app.bench import meters
from sessions_app.bench.load import Load, run
from sessions_app.bench.rig import Rig
from sessions_app.bench.sizes import Sizes

_STEPS = 10
_LOAD = Load(agents=16, turns=50)


async def measure(rig: Rig, sizes: Sizes) -> Mapping[str, Any]:
    """Resident memory after each tenth of the turns; sessions come and go meanwhile."""
    if not sizes.soak_turns:
        return {}
    rss = []
    for _ in range(_STEPS):
        for _ in range(max(1, sizes.soak_turns // _STEPS // _LOAD.total)):
            await run(rig, _LOAD)
        rss.append(round(meters.rss_mb(rig.processes), 1))
    return {"rss_mb_over_turns": {"turns": sizes.soak_turns, "rss_mb": rss}}
