"""What an engine is: token ids in, token ids out, behind one validated contract.

Not here: history, rendering, storage. A backend either returns a Generation that passed `validation`,
or raises one of the Upstream errors of `sessions_app.errors`; there is no third way out, and nothing is
retried after the engine may have begun to generate.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sessions_app.backends.http import HttpReply
from sessions_app.rendering.protocol import Ids

Logprobs = npt.NDArray[np.float64]
"""One natural-log probability per sampled id, finite, float64 as the engine sent it."""


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One generation to ask an engine for."""

    session_id: str
    """32 hex digits; sent as affinity header."""
    prompt_ids: Ids
    """What the engine is fed, exactly."""
    body: Mapping[str, Any]
    """The client's request in OpenAI chat form, without `stream` and `stream_options`, forced sampling
    applied. Chat engines forward it; the others read sampling fields from it."""
    template_kwargs: Mapping[str, Any]
    """The renderer's effective kwargs; chat engines are sent them."""
    tools: list[Any] | None
    headers: Mapping[str, str]
    """Client headers that may be forwarded (hop-by-hop ones and credentials of our own removed), lower-case
    names."""
    query: str = ""
    """The client's query string without `?`."""
    routed_experts_start_len: int | None = None
    """Rows already held, for additional R3; None = not asked for."""
    worker: str = ""
    """Base URL that served the session's last turn: asked again while it is healthy (prefix cache)."""
    odd_numbers: bool = False
    """The client's body may hold NaN or an infinity: what is sent must hold it, too."""
    patient: bool = False
    """429 and 503 with `Retry-After` are waited out and asked again. Never on the reference chat path."""


@dataclass(frozen=True, slots=True)
class Generation:
    """A validated reply of an engine."""

    ids: Ids
    logprobs: Logprobs
    finish_reason: str
    """Normalised: stop, tool_calls, length, abort, content_filter, error; "" where the engine said null."""
    raw_finish_reason: str | None
    message: dict[str, Any] | None
    """The assistant message as the engine parsed it, as received; None for engines that return ids only."""
    response_id: str | None
    """The engine's id; "" if missing, None if null."""
    weight_version: str | None
    """As reported with the reply; None = not reported."""
    prompt_tokens: int | None
    completion_tokens: int
    cached_tokens: int
    engine_seconds: float | None
    """`e2e_latency` as reported."""
    prompt_ids: Ids | None = None
    """What the engine says it was fed, where it renders the messages itself; None = exactly what was sent."""
    reply: dict[str, Any] | None = None
    """A chat engine's whole reply, parsed; nulls in place of the `side` payloads."""
    reply_text: str = ""
    """The same as JSON text exactly as received ("" where there is none)."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """The engine's response headers, lower-case names."""
    side: Mapping[str, bytes] = field(default_factory=dict)
    """Riders stored outside the hot row, by kind: routed_experts, indexer_topk (little-endian int32)."""
    extras: Mapping[str, Any] = field(default_factory=dict)
    """What else was reported: speculative counters, worker, matched stop."""
    worker: str = ""
    """Base URL that served it."""


class Backend(Protocol):
    """One engine protocol. Shared by all requests of a process; `start` and `close` run on its event loop."""

    name: str
    speaks_chat: bool
    """The engine parses messages itself and its reply is handed to chat clients."""

    async def start(self) -> None:
        """Open connection pools."""
        ...

    async def close(self) -> None:
        """Close them; idempotent."""
        ...

    def build_body(self, request: GenerationRequest) -> dict[str, Any]:
        """The outgoing body that `generate` sends for this request; ids in it are numpy arrays."""
        ...

    async def generate(self, request: GenerationRequest) -> Generation:
        """One generation. Cancelling it cancels the engine's request where its protocol can."""
        ...

    async def forward(
        self, *, session_id: str, method: str, path: str, query: str, body: bytes, headers: Mapping[str, str]
    ) -> HttpReply:
        """A request that is no generation (the raw proxy's), to the session's engine; its answer as it is."""
        ...

    async def ready(self) -> bool:
        """The engine answers its health endpoint."""
        ...
