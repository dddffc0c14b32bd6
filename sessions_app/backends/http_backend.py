"""What backends reached over HTTP have in common: their connections, their readiness, their vocabulary."""

from sessions_app.backends.dispatch import Dispatcher


class HttpBackend:
    """Base of the protocols; owns the dispatcher."""

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
