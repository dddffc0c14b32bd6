"""The local engine's HTTP side: `/generate` and `/abort_request` as SGLang has them, `/health`.

It listens before the model is loaded: health answers 503 until then, and generations wait. Importing torch is
a part of loading, as it may take half a minute.
"""

import asyncio
import json
import time
import uuid
from typing import TYPE_CHECKING, Any

from aiohttp import web

from sessions_app.backends.demo.forms import Completion, sglang_generate

if TYPE_CHECKING:
    from sessions_app.backends.local.request import Asked
    from sessions_app.backends.local.scheduler import Scheduler
    from sessions_app.backends.local.sequences import Sequence
    from sessions_app.backends.local.weights import LoadedModel


class LocalEngine:
    """One model, served."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._loading: asyncio.Task[tuple[LoadedModel, Scheduler]] | None = None
        self._running: dict[str, Sequence] = {}

    def application(self) -> web.Application:
        """The aiohttp application; loading begins when it starts."""
        app = web.Application(client_max_size=2**28)
        app.router.add_post("/generate", self._generate)
        app.router.add_post("/abort_request", self._abort)
        app.router.add_get("/health", self._health)
        app.on_startup.append(self._begin_loading)
        app.on_cleanup.append(self._close)
        return app

    async def _begin_loading(self, _app: web.Application) -> None:
        self._loading = asyncio.create_task(asyncio.to_thread(self._load))

    def _load(self) -> "tuple[LoadedModel, Scheduler]":
        from sessions_app.backends.local.scheduler import Scheduler
        from sessions_app.backends.local.weights import load

        loaded = load(self._folder)
        return loaded, Scheduler(loaded.model, loaded.pad, loaded.stops)

    async def _close(self, _app: web.Application) -> None:
        if self._loading is not None and self._loading.done() and not self._loading.exception():
            await asyncio.to_thread(self._loading.result()[1].close)

    async def _health(self, _request: web.Request) -> web.Response:
        assert self._loading is not None
        if not self._loading.done():
            return _json({"loading": self._folder}, 503)
        failure = self._loading.exception()
        return _json({"error": str(failure)}, 500) if failure else _json({"ok": True})

    async def _generate(self, request: web.Request) -> web.Response:
        assert self._loading is not None
        try:
            loaded, scheduler = await asyncio.shield(self._loading)
        except Exception as error:
            return _json({"error": {"message": str(error)}}, 500)
        return await self._generated(await _body(request), loaded, scheduler)

    async def _generated(self, body: Any, loaded: "LoadedModel", scheduler: "Scheduler") -> web.Response:
        from sessions_app.backends.local.request import Unreadable, read
        from sessions_app.backends.local.sequences import Sequence

        try:
            asked = read(body, loaded.tokenizer.vocab_size, loaded.context_length)
        except Unreadable as error:
            return _json({"error": {"message": str(error)}}, 400)
        sequence = Sequence(asked.prompt, asked.sampling)
        rid = asked.rid or uuid.uuid4().hex
        self._running[rid] = sequence
        try:
            scheduler.submit(sequence)
            await asyncio.wrap_future(sequence.result)
        except asyncio.CancelledError:
            sequence.abandoned = True
            raise
        finally:
            del self._running[rid]
        return _json(_reply(asked, rid, sequence, loaded))

    async def _abort(self, request: web.Request) -> web.Response:
        body = await _body(request)
        if isinstance(body, dict) and (sequence := self._running.get(str(body.get("rid")))):
            sequence.abandoned = True
        return web.Response()


def _reply(asked: "Asked", rid: str, sequence: "Sequence", loaded: "LoadedModel") -> dict[str, Any]:
    ids = sequence.ids
    raw = {"raw_logprobs": [each.raw_logprob for each in sequence.draws]} if asked.raw_logprobs else {}
    return sglang_generate(
        Completion(
            identity=rid,
            created=int(time.time()),
            model="local",
            prompt_ids=sequence.prompt,
            ids=ids,
            logprobs=[each.logprob for each in sequence.draws],
            text=loaded.tokenizer.decode(ids),
            message=None,
            finish_reason=sequence.finish_reason,
            prompt_tokens=len(sequence.prompt),
            completion_tokens=len(ids),
            seconds=time.monotonic() - sequence.begun,
            matched=sequence.matched,
            meta=raw,
        )
    )


async def _body(request: web.Request) -> Any:
    try:
        return json.loads(await request.read())
    except ValueError:
        return None


def _json(value: Any, status: int = 200) -> web.Response:
    return web.json_response(value, status=status)
