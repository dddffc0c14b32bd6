"""One web server under load, with everything that measures it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import psutil

from sessions_app.bench.client import Client, Turn
from sessions_app.bench.conversation import Conversation
from sessions_app.bench.installation import Installation, WebServer
from sessions_app.bench.meters import Spent, Tables, spent


@dataclass(frozen=True, slots=True)
class Rig:
    """Use `rigged` to make one."""

    installation: Installation
    web: WebServer
    processes: Sequence[psutil.Process]
    client: Client
    tables: Tables
    words: Sequence[str]

    def spent(self) -> Spent:
        """CPU so far of web processes and Postgres."""
        return spent(self.processes, self.installation.postmaster)

    async def engine_latency(self, milliseconds: float) -> None:
        """How long the engine takes from now on."""
        await self.client.tell(f"{self.installation.engine_url}/latency", str(milliseconds))

    async def agent(self, max_tokens: int, **options: object) -> "Agent":
        """A new session and its conversation."""
        return Agent(self.client, await self.client.create(**options), Conversation(self.words, max_tokens))


@dataclass(frozen=True, slots=True)
class Agent:
    """One session under way."""

    client: Client
    session: str
    conversation: Conversation

    async def turn(self, tokens: int, *, timed: bool = False) -> Turn:
        """The next turn: `tokens` more in the prompt, and the reply taken into the history."""
        turn = await self.client.turn(self.session, self.conversation.ask(tokens), timed=timed)
        self.conversation.answered(turn.reply)
        return turn


@asynccontextmanager
async def rigged(
    installation: Installation, words: Sequence[str], workers: int = 1, **settings: str
) -> AsyncIterator[Rig]:
    """A fresh web server and a client for it. `settings`: TITO_ variables of its own."""
    with installation.web(workers, **settings) as web:
        async with Client(web.base) as client:
            yield Rig(installation, web, web.processes, client, Tables(installation.database_url), words)
