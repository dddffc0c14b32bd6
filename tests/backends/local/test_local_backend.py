"""Backend `local` as the server uses it: one engine process for all, real ids, restarts, and an end."""

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest

from sessions_app import errors
from sessions_app.backends.flags import EngineFlags
from sessions_app.backends.local.backend import LocalBackend, LocalProtocol
from sessions_app.backends.local.sharing import EngineFiles, SharedEngine
from sessions_app.rendering.factory import load_renderer
from tests.backends.requests import make_dispatcher, make_request

pytestmark = pytest.mark.slow


@asynccontextmanager
async def local(home: Path, model: Path | str, vocab_size: int) -> AsyncIterator[LocalBackend]:
    def connect(url: str) -> LocalProtocol:
        return LocalProtocol(make_dispatcher(url, timeout_s=60.0), vocab_size, EngineFlags())

    backend = LocalBackend(SharedEngine(home, str(model)), connect)
    await backend.start()
    try:
        yield backend
    finally:
        await backend.close()


def process_id(home: Path) -> int:
    return int(json.loads(EngineFiles(home).address.read_text())["pid"])


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"


async def ended(pid: int) -> None:
    """Wait until a process is gone."""
    deadline = time.monotonic() + 60
    while alive(pid):
        assert time.monotonic() < deadline, "the engine outlived its last user"
        await asyncio.sleep(0.1)


async def closed(port: int) -> None:
    """Wait until the last thread of a killed process has let go of its sockets."""
    deadline = time.monotonic() + 60
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionRefusedError:
            break
        writer.close()
        assert time.monotonic() < deadline, "the killed engine still listens"
        await asyncio.sleep(0.1)
    await asyncio.sleep(0.1)


async def test_a_real_conversation_one_process_a_restart_and_an_end(tmp_path, tiny_model):
    parsers = {"tool_parser": "qwen3", "reasoning_parser": "think"}
    renderer = load_renderer("template", model=str(tiny_model), chat_template=None, kwargs={}, **parsers)
    body = {"messages": [], "max_tokens": 12, "seed": 1, "return_raw_logprobs": True}
    messages = [{"role": "user", "content": "Hello"}]
    async with (
        local(tmp_path, tiny_model, renderer.vocab_size) as one,
        local(tmp_path, tiny_model, renderer.vocab_size) as other,
    ):
        pid = process_id(tmp_path)
        served = renderer.render(messages, None)
        for backend in (one, other, one):
            done = await backend.generate(make_request(served.tolist(), body=body))
            assert 1 <= done.ids.size <= 12
            assert len(done.extras["raw_logprobs"]) == done.ids.size
            assert done.prompt_tokens == served.size
            served = np.concatenate([served, done.ids])
            reply = renderer.parse(done.ids, None).message
            new = [{"role": "user", "content": "and?"}]
            extension = renderer.extend(served, reply, new, None, cut=done.finish_reason == "length")
            served = np.concatenate([served[: served.size - extension.trim], extension.ids])
        assert await other.ready()
        assert process_id(tmp_path) == pid

        port = int(json.loads(EngineFiles(tmp_path).address.read_text())["port"])
        os.kill(pid, signal.SIGKILL)
        await closed(port)
        again = await one.generate(make_request(served.tolist(), body=body))
        assert again.ids.size
        assert process_id(tmp_path) != pid

        with pytest.raises(errors.UpstreamStatus) as caught:
            await one.generate(make_request([5] * 1024, body=body))
        assert caught.value.status == 400
        assert b"maximum context length" in caught.value.body

        task = asyncio.create_task(one.generate(make_request(body={"max_tokens": 900, "ignore_eos": True})))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        last = process_id(tmp_path)
    await ended(last)


async def test_a_folder_without_a_model_is_said_and_not_ready(tmp_path):
    (tmp_path / "nothing").mkdir()
    async with local(tmp_path, tmp_path / "nothing", 300) as backend:
        with pytest.raises(errors.UpstreamStatus) as caught:
            await backend.generate(make_request())
        assert caught.value.status == 500
        assert b"cannot be loaded" in caught.value.body
        assert not await backend.ready()
