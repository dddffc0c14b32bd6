"""Whether memory grows with the turns served."""

from collections.abc import Mapping
from typing import Any

from sessions_app.bench import meters
from sessions_app.bench.load import Load, run
from sessions_app.bench.rig import Rig, rigged
from sessions_app.bench.sizes import Sizes

_STEPS = 10
_LOAD = Load(agents=16, turns=50)
_CACHE_MB = "1"
"""Small enough to be full after the first tenth: what grows then is no cache."""


async def measure(rig: Rig, sizes: Sizes) -> Mapping[str, Any]:
    """Resident memory after each tenth of the turns; sessions come and go meanwhile."""
    if not sizes.soak_turns:
        return {}
    async with rigged(rig.installation, rig.words, TITO_CHECKPOINT_CACHE_MB=_CACHE_MB) as fresh:
        rss = [await _after(fresh, sizes.soak_turns // _STEPS) for _ in range(_STEPS)]
    return {"rss_mb_over_turns": {"turns": sizes.soak_turns, "rss_mb": rss}}


async def _after(rig: Rig, turns: int) -> float:
    for _ in range(max(1, turns // _LOAD.total)):
        await run(rig, _LOAD)
    return round(meters.rss_mb(rig.processes), 1)
