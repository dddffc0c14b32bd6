"""The demo engine's HTTP side: the paths of SGLang and vLLM, a health endpoint, and switches of its own.

POST /fault    {"name": "500", "times": 2}     the next generations fail that way; "" ends it
POST /weights  {"version": "2"}                 as after a weight update
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import numpy as np
from aiohttp import web

from sessions_app.backends.demo import request as requests
from sessions_app.backends.demo.faults import FAULTS
from sessions_app.backends.demo.model import DemoModel
from sessions_app.backends.demo.request import Asked, Unreadable
from sessions_app.backends.demo.wire import NO_FAULT, answer, json_response

_AFFINITY = ("x-smg-routing-key", "x-session-id")


class DemoEngine:
    """One engine; `application` is what a server runs."""

    def __init__(self, model: DemoModel, *, latency_s: float = 0.0, context_length: int = 131_072) -> None:
        self._model = model
        self._latency_s = latency_s
        self._context_length = context_length
        self._fault = ""
        self._fault_times = 0
        self._running: dict[str, asyncio.Event] = {}

    def set_fault(self, name: str, times: int | None = None) -> None:
        """Fail the next `times` generations (None = all) by a fault of the table; "" ends it."""
        if name and name not in FAULTS:
            raise ValueError(f"no fault {name!r}; known: {', '.join(FAULTS)}")
        self._fault = name
        self._fault_times = -1 if times is None else times

    def application(self) -> web.Application:
        """A new aiohttp application of this engine."""
        app = web.Application(client_max_size=2**28)
        for path in requests.PATHS:
            app.router.add_post(path, self._generate)
        app.router.add_get("/health", _alive)
        app.router.add_get("/get_model_info", self._model_info)
        app.router.add_get("/v1/models", _models)
        app.router.add_post("/tokenize", self._tokenize)
        app.router.add_post("/detokenize", self._detokenize)
        app.router.add_post("/abort_request", self._abort)
        app.router.add_post("/fault", _switch(self._take_fault))
        app.router.add_post("/weights", _switch(self._take_weights))
        return app

    async def _generate(self, request: web.Request) -> web.StreamResponse:
        fault = self._next_fault()
        try:
            asked = requests.read(request.path, await _json(request), self._model.tokenizer.vocab_size)
            self._check_context(asked)
        except Unreadable as error:
            return _refused(str(error))
        aborted = await self._wait(asked.rid)
        session = next((request.headers[name] for name in _AFFINITY if name in request.headers), "")
        completion = self._model.complete(asked, session, aborted=aborted)
        return await answer(request, completion, asked.form, FAULTS[fault] if fault else NO_FAULT)

    def _next_fault(self) -> str:
        if self._fault_times == 0:
            return ""
        self._fault_times -= 1
        return self._fault

    def _check_context(self, asked: Asked) -> None:
        if len(asked.prompt_ids) >= self._context_length:
            raise Unreadable(
                f"The input ({len(asked.prompt_ids)} tokens) is longer than the model's context length"
                f" ({self._context_length} tokens)."
            )

    async def _wait(self, rid: str) -> bool:
        """The time a generation takes; True when it was aborted meanwhile."""
        ended = self._running.setdefault(rid, asyncio.Event()) if rid else asyncio.Event()
        try:
            await asyncio.wait_for(ended.wait(), self._latency_s)
        except TimeoutError:
            return False
        finally:
            self._running.pop(rid, None)
        return True

    async def _abort(self, request: web.Request) -> web.Response:
        body = await _json(request)
        if ended := self._running.get(str(body.get("rid", "")) if isinstance(body, dict) else ""):
            ended.set()
        return web.Response()

    async def _tokenize(self, request: web.Request) -> web.Response:
        body = await _json(request)
        prompt = body.get("prompt") if isinstance(body, dict) else None
        if not isinstance(prompt, str):
            return _refused("prompt must be text")
        tokens = self._model.tokenizer.encode(prompt).tolist()
        return _json_reply({"tokens": tokens, "count": len(tokens), "max_model_len": self._context_length})

    async def _detokenize(self, request: web.Request) -> web.Response:
        body = await _json(request)
        tokens = body.get("tokens") if isinstance(body, dict) else None
        if not isinstance(tokens, list) or not all(type(token) is int for token in tokens):
            return _refused("tokens must be a list of ids")
        return _json_reply({"text": self._model.tokenizer.decode(np.asarray(tokens, dtype=np.int32))})

    async def _model_info(self, _request: web.Request) -> web.Response:
        return _json_reply({"model_path": "demo", "weight_version": self._model.weight_version})

    def _take_fault(self, body: dict[str, Any]) -> None:
        times = body.get("times")
        self.set_fault(str(body.get("name") or ""), times if isinstance(times, int) else None)

    def _take_weights(self, body: dict[str, Any]) -> None:
        self._model.weight_version = str(body.get("version", ""))


def _switch(change: Callable[[dict[str, Any]], None]) -> Callable[[web.Request], Any]:
    async def handler(request: web.Request) -> web.Response:
        body = await _json(request)
        try:
            change(body if isinstance(body, dict) else {})
        except ValueError as error:
            return _refused(str(error))
        return _json_reply({"ok": True})

    return handler


async def _alive(_request: web.Request) -> web.Response:
    return _json_reply({"ok": True})


async def _models(_request: web.Request) -> web.Response:
    return _json_reply({"object": "list", "data": [{"id": "demo", "object": "model", "owned_by": "tito"}]})


async def _json(request: web.Request) -> Any:
    try:
        return json.loads(await request.read() or b"null")
    except ValueError:
        return None


def _refused(message: str) -> web.Response:
    return _json_reply({"object": "error", "message": message, "type": "BadRequestError", "code": 400}, 400)


def _json_reply(value: Any, status: int = 200) -> web.Response:
    return json_response(json.dumps(value).encode(), status)
