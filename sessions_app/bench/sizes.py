"""How much of everything a benchmark does."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    """One kind of run."""

    concurrency: Mapping[int, int]
    """Agents at a time: turns of each."""
    contexts: tuple[int, ...]
    """Tokens of context at which a turn's cost is measured."""
    context_turns: int
    rerender_contexts: tuple[int, ...]
    rerender_turns: int
    """Of each agent without healing; ten times as many with it."""
    growth_sessions: int
    """Sessions of 200 turns."""
    in_flight: tuple[int, ...]
    """Generations of 5 s at a time."""
    samples_sessions: int
    stall_s: float
    """Seconds of small turns, without and with long first turns beside them."""
    soak_turns: int
    workers: tuple[int, ...]
    """Web processes of further runs at 64 agents."""
    exports: tuple[tuple[int, int], ...]
    """Sessions, and tokens of each. Memory is to follow the rollouts, not their number."""


QUICK = Sizes(
    concurrency={1: 150, 16: 50, 64: 20},
    contexts=(1_000, 50_000),
    context_turns=60,
    rerender_contexts=(32_000, 128_000),
    rerender_turns=3,
    growth_sessions=1,
    in_flight=(500,),
    samples_sessions=2,
    stall_s=5.0,
    soak_turns=0,
    workers=(),
    exports=((60, 10_000), (10, 100_000), (40, 100_000)),
)
DEFAULT = Sizes(
    concurrency={1: 400, 16: 100, 64: 50},
    contexts=(1_000, 8_000, 32_000, 50_000, 128_000),
    context_turns=100,
    rerender_contexts=(32_000, 128_000),
    rerender_turns=5,
    growth_sessions=3,
    in_flight=(500, 2_000),
    samples_sessions=5,
    stall_s=15.0,
    soak_turns=10_000,
    workers=(2,),
    exports=((60, 10_000), (10, 100_000), (40, 100_000), (4, 1_000_000)),
)
FULL = Sizes(
    concurrency={1: 1_000, 16: 200, 64: 100, 256: 50},
    contexts=(1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 50_000, 64_000, 128_000),
    context_turns=200,
    rerender_contexts=(32_000, 128_000),
    rerender_turns=10,
    growth_sessions=5,
    in_flight=(500, 2_000),
    samples_sessions=10,
    stall_s=30.0,
    soak_turns=100_000,
    workers=(2,),
    exports=((60, 10_000), (600, 10_000), (10, 100_000), (40, 100_000), (200, 100_000), (4, 1_000_000)),
)
