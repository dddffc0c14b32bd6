"""A closed loop: so many agents at a time, each sending its next turn as soon as it has its reply."""

import asyncio
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from sessions_app.bench.rig import Agent, Rig


@dataclass(frozen=True, slots=True)
class Load:
    """What to do."""

    agents: int
    turns: int
    """Of each conversation."""
    conversations: int = 1
    """Of each agent, one after the other."""
    prompt: int = 64
    """Tokens that each turn adds to the prompt."""
    completion: int = 64
    first: int | None = None
    """Tokens of the first message, where it is to be a long one: that turn is then no part of the measure."""
    healing: bool = True

    @property
    def total(self) -> int:
        """Turns measured."""
        return self.agents * self.conversations * self.turns


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it."""

    turns: int
    seconds: float
    milliseconds: "np.ndarray[tuple[int], np.dtype[np.float64]]"
    """Of each turn, as agents waited for it."""
    web_cpu_ms: float
    """A turn."""
    postgres_cpu_ms: float | None

    @property
    def per_second(self) -> float:
        """Turns."""
        return self.turns / self.seconds

    def percentile(self, percent: float) -> float:
        """Milliseconds within which this share of turns was answered."""
        return float(np.percentile(self.milliseconds, percent))


async def run(rig: Rig, load: Load) -> Outcome:
    """Open the sessions, send long first messages, then measure."""
    agents = [await _conversations(rig, load) for _ in range(load.agents)]
    before, started = rig.spent(), perf_counter()
    waited = await asyncio.gather(*(_converse(each, load) for each in agents))
    seconds, cost = perf_counter() - started, rig.spent().since(before)
    return Outcome(
        load.total,
        seconds,
        np.asarray([each for one in waited for each in one]),
        cost.web * 1000 / load.total,
        None if cost.postgres is None else cost.postgres * 1000 / load.total,
    )


async def _conversations(rig: Rig, load: Load) -> list[Agent]:
    """The sessions of one agent."""
    sessions = [await rig.agent(load.completion, healing=load.healing) for _ in range(load.conversations)]
    if load.first is not None:
        for session in sessions:
            await session.turn(load.first)
    return sessions


async def _converse(sessions: list[Agent], load: Load) -> list[float]:
    return [(await session.turn(load.prompt)).milliseconds for session in sessions for _ in range(load.turns)]
