"""Turns a second against the same server without healing, which renders and tokenises the whole history."""

from collections.abc import Mapping
from typing import Any

from sessions_app.bench.load import Load, Outcome, run
from sessions_app.bench.rig import Rig
from sessions_app.bench.sizes import Sizes

_AGENTS = 2
_MORE = 10
"""Healed turns for each that is not, so that both take long enough to be measured."""


async def measure(rig: Rig, sizes: Sizes) -> Mapping[str, Any]:
    """See module."""
    found: dict[str, Any] = {}
    for tokens in sizes.rerender_contexts:
        healed = await _at(rig, tokens, sizes.rerender_turns * _MORE, healing=True)
        rendered = await _at(rig, tokens, sizes.rerender_turns, healing=False)
        name = f"{tokens // 1000}k"
        found[f"ratio_vs_rerender_{name}"] = round(healed.per_second / rendered.per_second, 2)
        found[f"turns_per_second_{name}"] = {
            "healed": round(healed.per_second, 2),
            "rerendered": round(rendered.per_second, 2),
        }
    return found


async def _at(rig: Rig, tokens: int, turns: int, *, healing: bool) -> Outcome:
    return await run(rig, Load(_AGENTS, turns, first=tokens, healing=healing))
