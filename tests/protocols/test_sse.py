"""Waiting for a turn: what goes out before its end, and what becomes of failures."""

import asyncio
from typing import Any

import pytest

from sessions_app.errors import NotReady, TitoError
from sessions_app.protocols.sse import finished_within, padded_json, stream


async def soon(outcome: Any) -> Any:
    await asyncio.sleep(0.03)
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def events(result: str) -> list[bytes]:
    return [result.encode(), b"end"]


def failed(error: TitoError) -> list[bytes]:
    return [f"{error.code}: {error}".encode()]


async def streamed(outcome: Any) -> list[bytes]:
    work = asyncio.create_task(soon(outcome))
    return [piece async for piece in stream(work, events, failed, 0.01, b".")]


async def test_keep_alives_come_until_the_events() -> None:
    pieces = await streamed("hi")
    assert pieces[-2:] == [b"hi", b"end"]
    assert set(pieces[:-2]) == {b"."}
    assert len(pieces) > 3


@pytest.mark.parametrize(
    ("error", "told"),
    [(NotReady("soon"), b"not_ready: soon"), (KeyError("secret"), b"internal_error: internal error")],
)
async def test_a_failure_is_told_once_and_without_internals(error: Exception, told: bytes) -> None:
    pieces = await streamed(error)
    assert pieces[-1] == told
    assert set(pieces[:-1]) == {b"."}


@pytest.mark.parametrize(
    ("outcome", "told"), [("hi", b"hi"), (NotReady("x"), b"not_ready"), (KeyError("s"), b"internal_error")]
)
async def test_a_json_reply_is_padded_with_blanks(outcome: Any, told: bytes) -> None:
    work = asyncio.create_task(soon(outcome))
    pieces = [piece async for piece in padded_json(work, str.encode, lambda e: e.code.encode(), 0.01)]
    assert b"".join(pieces).lstrip() == told
    assert pieces[0] == b" "


async def test_waiting_does_not_cancel() -> None:
    work = asyncio.create_task(soon("hi"))
    assert not await finished_within(work, 0.001)
    assert await finished_within(work, None)
    assert work.result() == "hi"
