"""What a turn costs as its context grows, and where its time goes."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from sessions_app.bench.client import Turn
from sessions_app.bench.load import Load, run
from sessions_app.bench.rig import Rig
from sessions_app.bench.sizes import Sizes

_TIMED = 30
_STAGES_AT = (1_000, 50_000)


async def measure(rig: Rig, sizes: Sizes) -> Mapping[str, Any]:
    """See module."""
    cpu, postgres = {}, {}
    for tokens in sizes.contexts:
        outcome = await run(rig, Load(1, sizes.context_turns, first=tokens))
        cpu[str(tokens)] = round(outcome.web_cpu_ms, 3)
        postgres[str(tokens)] = outcome.postgres_cpu_ms and round(outcome.postgres_cpu_ms, 3)
    turns = {tokens: await _timed(rig, tokens) for tokens in _STAGES_AT}
    first, last = turns[_STAGES_AT[0]][0], turns[_STAGES_AT[0]][-1]
    return {
        "cpu_ms_by_context": cpu,
        "pg_cpu_ms_by_context": postgres,
        "added_latency_ms": {str(tokens): stages_of(timed) for tokens, timed in turns.items()},
        "sql_round_trips_per_turn": (last.statements - first.statements) / (_TIMED - 1),
    }


async def _timed(rig: Rig, tokens: int) -> list[Turn]:
    agent = await rig.agent(64)
    await agent.turn(tokens)
    return [await agent.turn(64, timed=True) for _ in range(_TIMED)]


def stages_of(turns: Sequence[Turn]) -> dict[str, float]:
    """Median milliseconds of each stage; `http` is what lies between agent and turn."""
    stages = {name: median(turn.stages[name] for turn in turns) for name in turns[0].stages}
    stages["http"] = median(turn.milliseconds - sum(turn.stages.values()) for turn in turns)
    stages["total"] = median(turn.milliseconds for turn in turns)
    return {name: round(spent, 3) for name, spent in stages.items()}
