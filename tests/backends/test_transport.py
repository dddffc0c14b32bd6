"""The HTTP client: texts of failures, retries before anything was sent, JSON that is not altered."""

import asyncio
import json
import math

import numpy as np
import pytest

from sessions_app import errors
from sessions_app.backends import http, json_wire
from sessions_app.backends.http import HttpClient
from tests.fakes.engine import FakeEngine, Reply


async def post(url: str, timeout_s: float = 5.0) -> http.HttpReply:
    client = HttpClient(timeout_s)
    await client.start()
    try:
        return await client.send("POST", url, b"{}", {})
    finally:
        await client.close()


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (
            "cut",
            "backend transport error: RemoteProtocolError: Server disconnected without sending a response.",
        ),
        ("hang", "backend transport error: ReadTimeout: "),
    ],
)
async def test_failures_have_the_references_texts(fault, text):
    async with FakeEngine() as engine:
        engine.script(fault)
        with pytest.raises(errors.UpstreamError) as caught:
            await post(engine.url + "/generate", timeout_s=0.3)
    assert str(caught.value) == text


async def test_a_server_that_comes_up_late_is_reached_by_a_retry():
    probe = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
    port = probe.sockets[0].getsockname()[1]
    probe.close()
    await probe.wait_closed()

    async def reply(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
        await writer.drain()

    pending = asyncio.create_task(post(f"http://127.0.0.1:{port}/x"))
    await asyncio.sleep(0.02)
    server = await asyncio.start_server(reply, "127.0.0.1", port)
    assert (await pending).status == 200
    server.close()


async def test_a_broken_exchange_is_never_sent_again():
    async with FakeEngine() as engine:
        engine.script("cut", Reply(ids=[1]))
        with pytest.raises(errors.UpstreamUnreachable):
            await post(engine.url + "/generate")
        assert len(engine.requests) == 1


async def test_posting_before_start_says_so():
    with pytest.raises(errors.NotReady):
        await HttpClient(1.0).send("POST", "http://127.0.0.1:9", b"", {})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a":123456789012345678901}', {"a": 123456789012345678901}),
        ('{"a":-9223372036854775809}', {"a": -9223372036854775809}),
        ('{"a":18446744073709551615}', {"a": 18446744073709551615}),
        ('{"a":"\\ud800"}', {"a": "\ud800"}),
        ('{"a":-0.00012345678901234567}', {"a": -0.00012345678901234567}),
        ('{"a":"\\u0000é"}', {"a": "\0é"}),
    ],
)
def test_reading_keeps_every_value(text, value):
    read = json_wire.loads(text.encode())
    assert read == value
    assert type(read["a"]) is type(value["a"])


def test_reading_accepts_nan_and_infinity():
    read = json_wire.loads(b"[NaN, -Infinity, 1e999]")
    assert math.isnan(read[0])
    assert read[1:] == [-math.inf, math.inf]


@pytest.mark.parametrize("raw", [b"not json", b"\xff\xfe", b"", b"[" * 100_000, b"1" * 5000])
def test_what_is_no_json_is_a_value_error(raw):
    with pytest.raises(ValueError):  # noqa: PT011
        json_wire.loads(raw)


def test_writing_keeps_arrays_nan_and_surrogates():
    body = {"input_ids": np.asarray([1, 2], dtype=np.int32), "top_p": math.nan, "messages": ["\ud83d"]}
    assert json.loads(json_wire.dumps_body(body))["input_ids"] == [1, 2]
    assert b'"top_p":NaN' in json_wire.dumps_body(body)
    assert json.loads(json_wire.dumps_body({**body, "top_p": 1}))["messages"] == ["\ud83d"]
    assert json_wire.dumps_body({"a": "é"}) == '{"a":"é"}'.encode()
