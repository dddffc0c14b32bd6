"""A scripted engine on a real socket: speaks the engines' protocols and remembers what it was sent.

    async with FakeEngine() as engine:            # on the running loop
    with FakeEngine() as engine:                  # on a loop of its own, in a thread

    engine.script(Reply(ids=[104, 258]), "500", Status(418, {}, b"tea"))   # one item per generation, in order
    engine.requests[-1].body["input_ids"]

Without a script it echoes the last ids of the prompt. Fault names are those of the demo engine's table.
"""

import asyncio
import itertools
import json
import threading
import time
import uuid
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

from sessions_app.backends.demo import forms
from sessions_app.backends.demo.faults import FAULTS, Fault, Status
from sessions_app.backends.demo.wire import NO_FAULT, answer

_FORMS: dict[str, forms.Form] = {
    "/generate": forms.sglang_generate,
    "/inference/v1/generate": forms.vllm_generate,
    "/v1/completions": forms.vllm_completion,
}
_ECHOED = 4


@dataclass(frozen=True)
class Reply:
    """One scripted completion; what is not given is made up consistently."""

    ids: list[int]
    logprobs: list[float | None] | None = None
    """Default: -(i+1)/64."""
    message: dict[str, Any] | None = None
    text: str = "ok"
    """Content of the default message."""
    finish: str | None = "stop"
    completion_tokens: int | None = None
    prompt_ids: list[int] | None = None
    """What a rendering engine says it was fed; default: what it was sent."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    """Added to SGLang's `meta_info`; may overwrite."""
    matched: int | str | None = None
    """What ended it; default: the last id."""
    weight_version: str = "7"
    identity: str | None = None
    cached_tokens: int = 0
    delay_s: float = 0.0
    fault: str = ""
    gate: threading.Event | None = None
    """The answer is held back until it is set."""


@dataclass(frozen=True)
class Received:
    """One request as it arrived."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    """Lower-case names."""
    header_lines: list[tuple[str, str]]
    """Every line, so that doubles can be seen."""
    body: Any
    raw: bytes


class FakeEngine:
    """See the module's docstring."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[Received] = []
        """Generations, in order of arrival."""
        self.aborted: list[Received] = []
        """What was sent to `/abort_request`."""
        self.abandoned = 0
        """Generations whose client hung up before the answer."""
        self.health_status = 200
        self.health_checks = 0
        self._script: deque[Reply | str | Status] = deque()
        self._numbers = itertools.count(1)
        self._runner: web.AppRunner | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def script(self, *items: Reply | str | Status) -> None:
        """Queue answers: completions, names of faults, or whole HTTP answers."""
        self._script.extend(items)

    @property
    def bodies(self) -> list[Any]:
        """Parsed bodies of the generations."""
        return [received.body for received in self.requests]

    async def seen(self, count: int, timeout_s: float = 5.0) -> None:
        """Wait until that many generations have arrived."""
        deadline = time.monotonic() + timeout_s
        while len(self.requests) < count:
            assert time.monotonic() < deadline, f"{len(self.requests)} of {count} requests arrived"
            await asyncio.sleep(0.005)

    def wait_seen(self, count: int, timeout_s: float = 5.0) -> None:
        """`seen` for synchronous tests."""
        asyncio.run(self.seen(count, timeout_s))

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._shut()

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        assert ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self, ready: threading.Event) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.run_until_complete(self._open())
        ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(self._shut())
        self._loop.close()

    async def _open(self) -> None:
        app = web.Application(client_max_size=2**28)
        app.router.add_get("/health", self._health)
        app.router.add_post("/abort_request", self._abort)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _shut(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _health(self, _request: web.Request) -> web.Response:
        self.health_checks += 1
        return web.Response(status=self.health_status)

    async def _abort(self, request: web.Request) -> web.Response:
        self.aborted.append(await _received(request))
        return web.Response()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        received = await _received(request)
        self.requests.append(received)
        if request.method == "GET" and not self._script:
            return web.Response(status=404)
        item = self._script.popleft() if self._script else self._echo(received)
        if isinstance(item, Status):
            return web.Response(body=item.body, status=item.status, headers=item.headers)
        reply, fault = (self._echo(received), FAULTS[item]) if isinstance(item, str) else (item, _fault(item))
        try:
            await _held(reply)
            return await answer(request, self._completion(received, reply), _form(received), fault)
        except asyncio.CancelledError:
            self.abandoned += 1
            raise

    def _echo(self, received: Received) -> Reply:
        return Reply(ids=_prompt(received)[-_ECHOED:] or [0])

    def _completion(self, received: Received, reply: Reply) -> forms.Completion:
        number = next(self._numbers)
        prompt = reply.prompt_ids if reply.prompt_ids is not None else _prompt(received)
        logprobs = reply.logprobs
        if logprobs is None:
            logprobs = [-(index + 1) / 64 for index in range(len(reply.ids))]
        return forms.Completion(
            identity=reply.identity or f"resp-{uuid.uuid4().hex[:12]}-{number}",
            created=1_700_000_000 + number,
            model="mock-model",
            prompt_ids=prompt,
            ids=reply.ids,
            logprobs=logprobs,
            text=reply.text,
            message=reply.message or {"role": "assistant", "content": reply.text},
            finish_reason=reply.finish,
            prompt_tokens=len(prompt),
            completion_tokens=len(reply.ids) if reply.completion_tokens is None else reply.completion_tokens,
            cached_tokens=reply.cached_tokens,
            weight_version=reply.weight_version,
            seconds=0.25,
            matched=reply.matched,
            meta=reply.meta,
        )


async def _received(request: web.Request) -> Received:
    raw = await request.read()
    try:
        body = json.loads(raw) if raw else None
    except ValueError:
        body = None
    lines = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in request.raw_headers]
    return Received(
        request.method, request.path, request.rel_url.raw_query_string, dict(lines), lines, body, raw
    )


def _prompt(received: Received) -> list[int]:
    body = received.body if isinstance(received.body, dict) else {}
    for key in ("input_ids", "token_ids", "prompt"):
        if isinstance(body.get(key), list):
            return list(body[key])
    return [1, 2, 3]


def _form(received: Received) -> forms.Form:
    chat = forms.sglang_chat if "input_ids" in (received.body or {}) else forms.vllm_chat
    return _FORMS.get(received.path, chat)


def _fault(reply: Reply) -> Fault:
    return FAULTS[reply.fault] if reply.fault else NO_FAULT


async def _held(reply: Reply) -> None:
    await asyncio.sleep(reply.delay_s)
    pause = 0.005
    while reply.gate is not None and not reply.gate.is_set():
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, 0.1)
