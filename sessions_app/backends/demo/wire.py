"""Sends a completion over aiohttp in a protocol's form, faults included."""

import asyncio
import json

from aiohttp import web

from sessions_app.backends.demo.faults import Fault
from sessions_app.backends.demo.forms import Completion, Form

_SLOW_S = 2.0
_HANG_S = 3600.0
NO_FAULT = Fault()


async def answer(
    request: web.Request, completion: Completion, form: Form, fault: Fault = NO_FAULT
) -> web.StreamResponse:
    """The reply to one generation request."""
    if fault.status is not None:
        return json_response(fault.status.body, fault.status.status, fault.status.headers)
    await _delay(fault.wire)
    if fault.wire == "cut":
        _close(request)
        return web.Response()
    body = json.dumps(_reply(completion, form, fault)).encode()
    body = fault.text(body) if fault.text else body
    return await _half(request, body) if fault.wire == "cut_body" else json_response(body)


def json_response(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """JSON bytes as they are."""
    return web.Response(body=body, status=status, headers=headers, content_type="application/json")


def _reply(completion: Completion, form: Form, fault: Fault) -> object:
    reply = form(fault.completion(completion) if fault.completion else completion)
    return fault.reply(reply) if fault.reply else reply


async def _delay(wire: str) -> None:
    if wire in ("slow", "hang"):
        await asyncio.sleep(_SLOW_S if wire == "slow" else _HANG_S)


async def _half(request: web.Request, body: bytes) -> web.StreamResponse:
    response = web.StreamResponse(
        headers={"content-type": "application/json", "content-length": str(len(body))}
    )
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    _close(request)
    return response


def _close(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.close()
