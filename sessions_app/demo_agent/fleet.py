"""Many runs at once. A run that fails ends there and is counted; the others go on."""

import asyncio
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from openai import APIConnectionError, APIStatusError, AsyncOpenAI, OpenAIError

from sessions_app.demo_agent.agent import Conversation
from sessions_app.demo_agent.rerender import compare
from sessions_app.demo_agent.sayings import SYSTEM, sayings
from sessions_app.demo_agent.scenarios import scenario_of
from sessions_app.demo_agent.server import RequestFailed, Server
from sessions_app.demo_agent.tools import Toolbox, fill
from sessions_app.demo_agent.totals import Totals

_CLIENT: dict[str, Any] = {"api_key": "unused", "max_retries": 0, "timeout": 900.0}
"""A failure is counted, not retried; more patience than engines have, so that the server's error is seen."""
_FEWEST_SAYINGS = 3
_SAYINGS_SPREAD = 3


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run."""

    sessions: int
    concurrency: int
    group: str
    """Group id of all sessions of this demo."""


async def run_all(server: Server, plan: Plan, advanced: Callable[[Totals], None]) -> Totals:
    """Every run of a plan. `advanced` is called after each."""
    totals = Totals()
    slots = asyncio.Semaphore(plan.concurrency)
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="tito-demo-") as folder:
        fill(Path(folder))
        toolbox = Toolbox(Path(folder))
        async with AsyncOpenAI(**_CLIENT, base_url=server.base) as client:

            async def one(number: int) -> None:
                async with slots:
                    await _run(server, client, toolbox, plan, number, totals)
                advanced(totals)

            await asyncio.gather(*(one(number) for number in range(plan.sessions)))
    totals.seconds = time.perf_counter() - begun
    return totals


async def _run(
    server: Server, client: AsyncOpenAI, toolbox: Toolbox, plan: Plan, number: int, totals: Totals
) -> None:
    """One session from its first turn to the comparison with a render."""
    scenario = scenario_of(number)
    try:
        opened = await server.open(group_id=plan.group, harness="demo", labels={"demo": scenario.__name__})
        totals.sessions += 1
        own = client.with_options(base_url=f"{server.base}/sessions/{opened.id}/v1", api_key=opened.key)
        talk = Conversation(own, toolbox, SYSTEM, totals.turns)
        await scenario(talk, sayings(number, _FEWEST_SAYINGS + number % _SAYINGS_SPREAD))
        totals.rerendering.add(await compare(server, opened.id))
    except (OpenAIError, RequestFailed, aiohttp.ClientError, OSError) as error:
        totals.errors[_named(error)] += 1


def _named(error: Exception) -> str:
    match error:
        case APIStatusError():
            return f"{error.status_code} {error.response.headers.get('x-tito-error-code', '')}".strip()
        case APIConnectionError():
            return f"connection: {type(error.__cause__ or error).__name__}"
        case RequestFailed():
            return str(error)
    return type(error).__name__
