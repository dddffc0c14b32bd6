"""Backend `local`: the `sglang-generate` protocol towards an engine process that this backend starts and
restarts."""

import asyncio
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from sessions_app.backends.base import Generation, GenerationRequest
from sessions_app.backends.http import ConnectFailed, HttpReply
from sessions_app.backends.local.sharing import SharedEngine
from sessions_app.backends.sglang_generate import SglangGenerate

_SAME_NAME = (
    "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "stop", "stop_token_ids", "ignore_eos",
)  # fmt: skip


class LocalProtocol(SglangGenerate):
    """The native protocol, with fewer sampling fields and the one that only our engine knows."""

    name = "local"
    sampling_names = {**{name: name for name in _SAME_NAME}, "seed": "sampling_seed"}

    def build_body(self, request: GenerationRequest) -> dict[str, Any]:
        """`return_raw_logprobs` of a chat body asks for the model's own logprobs as well."""
        raw = {"return_raw_logprobs": True} if request.body.get("return_raw_logprobs") else {}
        return super().build_body(request) | raw


Connect = Callable[[str], LocalProtocol]
"""The protocol towards an engine at a base URL."""


class LocalBackend:
    """Generation requests wait while the model loads."""

    name = "local"
    speaks_chat = False

    def __init__(self, engine: SharedEngine, connect: Connect) -> None:
        self._engine = engine
        self._connect = connect
        self._towards: LocalProtocol | None = None
        self._bodies = connect("http://127.0.0.1")
        self._starting = asyncio.Lock()

    async def start(self) -> None:
        """Start the engine process, or find the one that another server process started."""
        await self._running(None)

    async def close(self) -> None:
        """Let go of it; the process ends when the last server process has; idempotent."""
        if self._towards is not None:
            await self._towards.close()
        self._towards = None
        self._engine.release()

    async def ready(self) -> bool:
        """The model is loaded."""
        return self._towards is not None and await self._towards.ready()

    def build_body(self, request: GenerationRequest) -> dict[str, Any]:
        """As `sglang-generate`."""
        return self._bodies.build_body(request)

    async def generate(self, request: GenerationRequest) -> Generation:
        """One generation. An engine process that died is started again, once."""
        towards = await self._running(None)
        try:
            return await towards.generate(request)
        except ConnectFailed:
            return await (await self._running(towards)).generate(request)

    async def forward(
        self, *, session_id: str, method: str, path: str, query: str, body: bytes, headers: Mapping[str, str]
    ) -> HttpReply:
        """To the engine process, which knows no other paths than its own."""
        towards = await self._running(None)
        return await towards.forward(
            session_id=session_id, method=method, path=path, query=query, body=body, headers=headers
        )

    async def _running(self, dead: LocalProtocol | None) -> LocalProtocol:
        """The protocol towards a live process; `dead`: one that refused a connection."""
        async with self._starting:
            if self._towards is not None and self._towards is not dead:
                return self._towards
            if self._towards is not None:
                await self._towards.close()
            self._towards = self._connect(await asyncio.to_thread(self._engine.ensure))
            await self._towards.start()
            return self._towards


def require_torch() -> None:
    """Raises ImproperlyConfigured with the remedy where torch is not installed."""
    if find_spec("torch") is None:
        raise ImproperlyConfigured("TITO_BACKEND=local needs torch: pip install -r requirements-local.txt")
