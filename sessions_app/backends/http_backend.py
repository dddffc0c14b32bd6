"""What backends reached over HTTP have in common: their connections, their readiness, their vocabulary."""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from sessions_app import errors
from sessions_app.backends.base import Generation, GenerationRequest
from sessions_app.backends.dispatch import Answer, Dispatcher, Outgoing
from sessions_app.backends.headers import forwarded
from sessions_app.backends.http import HttpReply


class HttpBackend(ABC):
    """Base of the protocols; owns the dispatcher."""

    affinity: str
    """Header that keeps a session on one worker behind the engine's own router."""

    def __init__(self, dispatcher: Dispatcher, vocab_size: int) -> None:
        self._dispatcher = dispatcher
        self._vocab_size = vocab_size

    async def start(self) -> None:
        """Open connection pools."""
        await self._dispatcher.start()

    async def close(self) -> None:
        """Close them; idempotent."""
        await self._dispatcher.close()

    async def ready(self) -> bool:
        """At least one engine answers."""
        return await self._dispatcher.ready()

    @abstractmethod
    def read(self, answer: Answer, request: GenerationRequest) -> Generation:
        """The validated generation of a 200."""

    def _validated(self, answer: Answer, request: GenerationRequest) -> Generation:
        """The generation of a 200; one that is refused goes along with the error."""
        try:
            return self.read(answer, request)
        except errors.UpstreamError as error:
            error.answer = answer.body
            raise

    async def forward(
        self, *, session_id: str, method: str, path: str, query: str, body: bytes, headers: Mapping[str, str]
    ) -> HttpReply:
        """A request that is no generation, as it is, to the session's engine; its answer of any status."""
        target = f"/{path}?{query}" if query else f"/{path}"
        sent = forwarded(headers, self.affinity, session_id)
        return await self._dispatcher.send(Outgoing(session_id, method, target, body, sent))
