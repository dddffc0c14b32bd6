"""What comes over the wire instead of a plain reply: packed, moved, cut, slow, endless, or closed behind our
back. The engine here is bytes on a socket."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from sessions_app import errors
from sessions_app.backends.base import Backend
from sessions_app.backends.dispatch import Dispatcher
from sessions_app.backends.http import HttpClient
from sessions_app.backends.routing import EnginePool
from tests.backends.engines import ENGINES
from tests.backends.requests import make_request, started


def body(padding: int = 0) -> bytes:
    """A sound reply of vLLM's token endpoint."""
    choice = {
        "token_ids": [104, 258],
        "logprobs": {"content": [{"logprob": -0.5}, {"logprob": -0.25}]},
        "finish_reason": "stop",
        "text": "x" * padding,
    }
    return json.dumps({"request_id": "r", "choices": [choice]}).encode()


def reply(content: bytes, *headers: str, status: str = "200 OK", length: int | None = None) -> bytes:
    told = len(content) if length is None else length
    lines = [f"HTTP/1.1 {status}", f"content-length: {told}", *headers, "", ""]
    return "\r\n".join(lines).encode() + content


class ByteEngine:
    """Answers the nth request with the nth item; `None` hangs up."""

    def __init__(self, *answers: bytes | None, hang_up: bool = False, pause_s: float = 0.0) -> None:
        self._answers = list(answers)
        self._hang_up = hang_up
        self._pause_s = pause_s
        self.connections = 0
        self.requests = 0

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await _request(reader):
                self.requests += 1
                answer = self._answers.pop(0)
                if answer is None:
                    break
                await self._write(writer, answer)
                if self._hang_up:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _write(self, writer: asyncio.StreamWriter, answer: bytes) -> None:
        step = len(answer) if not self._pause_s else 16
        for start in range(0, len(answer), step):
            writer.write(answer[start : start + step])
            await writer.drain()
            await asyncio.sleep(self._pause_s)


async def _request(reader: asyncio.StreamReader) -> bool:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
    await reader.readexactly(int(length.split(b":")[1]))
    return True


@asynccontextmanager
async def talking(
    engine: ByteEngine, timeout_s: float = 10.0, largest: int = 2**26
) -> AsyncIterator[Backend]:
    async with engine.serving() as url:
        dispatcher = Dispatcher(HttpClient(timeout_s, largest), EnginePool((url,)))
        async with started(ENGINES["vllm"](dispatcher)) as backend:
            yield backend


@pytest.mark.parametrize(
    "answer",
    [
        reply(body()),
        reply(body(), "content-type: text/html"),
        reply(gzip.compress(body()), "content-encoding: gzip"),
        reply(gzip.compress(body()), "content-encoding: gzip", "content-type: application/json"),
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body()), body()),
        b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" + reply(body()),
        reply(b" \n" + body() + b"\n "),
        reply(body(5_000_000)),
    ],
    ids=["plain", "html", "gzip", "gzip json", "chunked", "hints", "blanks", "large"],
)
async def test_a_sound_reply_is_read_in_whatever_wrapping(answer):
    async with talking(ByteEngine(answer)) as backend:
        assert (await backend.generate(make_request())).ids.tolist() == [104, 258]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (reply(b""), errors.UpstreamInvalidReply),
        (reply(body() + b"x"), errors.UpstreamInvalidReply),
        (reply(b"\xef\xbb\xbf" + body()), errors.UpstreamInvalidReply),
        (reply(b"data: " + body() + b"\n\n", "content-type: text/event-stream"), errors.UpstreamInvalidReply),
        (reply(body().replace(b"104", b"\xff")), errors.UpstreamInvalidReply),
        (reply(b"[" * 100_000), errors.UpstreamInvalidReply),
        (reply(body(), length=len(body()) + 9), errors.UpstreamUnreachable),
        (reply(body(), "content-encoding: gzip"), errors.UpstreamUnreachable),
        (reply(gzip.compress(body())[:60], "content-encoding: gzip"), errors.UpstreamInvalidReply),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfff\r\n{", errors.UpstreamUnreachable),
        (b"SSH-2.0-OpenSSH_9.6\r\n", errors.UpstreamUnreachable),
        (None, errors.UpstreamUnreachable),
        (reply(body(), "x: " + "y" * 100_000), errors.UpstreamUnreachable),
    ],
)
async def test_what_is_no_reply_is_a_typed_error_and_is_asked_for_once(answer, expected):
    engine = ByteEngine(answer, hang_up=True)
    async with talking(engine) as backend:
        with pytest.raises(errors.UpstreamError) as caught:
            await backend.generate(make_request(patient=True))
    assert type(caught.value) is expected
    assert engine.requests == 1


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary Redirect", "204 No Content"])
async def test_another_status_is_no_reply_and_nobody_is_followed(status):
    engine = ByteEngine(reply(b"", "location: http://127.0.0.1:1/", status=status), hang_up=True)
    async with talking(engine) as backend:
        with pytest.raises(errors.UpstreamStatus) as caught:
            await backend.generate(make_request())
    assert caught.value.status == int(status[:3])


async def test_a_packed_refusal_passes_unpacked():
    packed = gzip.compress(b'{"error":"boom"}')
    engine = ByteEngine(reply(packed, "content-encoding: gzip", status="500 Oh"), hang_up=True)
    async with talking(engine) as backend:
        with pytest.raises(errors.UpstreamStatus) as caught:
            await backend.generate(make_request())
    assert caught.value.body == b'{"error":"boom"}'


async def test_an_engine_may_close_after_each_reply():
    engine = ByteEngine(*[reply(body())] * 3, hang_up=True)
    async with talking(engine) as backend:
        for _ in range(3):
            assert (await backend.generate(make_request())).ids.size == 2
            await asyncio.sleep(0.05)
    assert engine.connections == 3


async def test_a_connection_is_used_again_while_it_is_open():
    engine = ByteEngine(*[reply(body())] * 3)
    async with talking(engine) as backend:
        for _ in range(3):
            await backend.generate(make_request())
    assert (engine.connections, engine.requests) == (1, 3)


async def test_a_reply_that_trickles_in_takes_no_longer_than_the_timeout():
    async with talking(ByteEngine(reply(body()), pause_s=0.1), timeout_s=0.3) as backend:
        with pytest.raises(errors.UpstreamTimeout):
            await backend.generate(make_request())


@pytest.mark.parametrize("packed", [False, True])
async def test_an_answer_without_end_is_not_kept_in_memory(packed):
    content = body(3_000_000)
    headers = ["content-encoding: gzip"] if packed else []
    answer = reply(gzip.compress(content) if packed else content, *headers)
    async with talking(ByteEngine(answer, reply(body())), largest=1_000_000) as backend:
        with pytest.raises(errors.UpstreamInvalidReply, match="longer than 1000000 bytes"):
            await backend.generate(make_request())
        assert (await backend.generate(make_request())).ids.size == 2
