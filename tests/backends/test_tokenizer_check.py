"""An engine with another tokenizer is found at readiness and never used; one that cannot be asked is left
in peace.
"""

import numpy as np
import pytest
from aiohttp.test_utils import TestServer

from sessions_app import errors
from sessions_app.backends.base import Backend
from sessions_app.backends.demo.faults import Status
from sessions_app.backends.demo.model import DemoModel
from sessions_app.backends.demo.server import DemoEngine
from sessions_app.backends.dispatch import Dispatcher
from sessions_app.backends.http import HttpClient
from sessions_app.backends.routing import EnginePool
from sessions_app.backends.tokenizer_check import SENTENCE, Probe, probe_of
from sessions_app.rendering.factory import DEMO_MODEL, load_renderer, load_tokenizer
from sessions_app.rendering.protocol import Renderer
from tests.backends.engines import ENGINES
from tests.backends.requests import make_request, started
from tests.backends.toy_tokenizer import ToyTokenizer
from tests.fakes.engine import FakeEngine


def demo_renderer() -> Renderer:
    parsers = {"tool_parser": "qwen3", "reasoning_parser": "think"}
    return load_renderer("template", model="", chat_template=None, kwargs={}, **parsers)


def demo_probe() -> Probe:
    probe = probe_of(demo_renderer())
    assert probe is not None
    return probe


def dispatcher(url: str) -> Dispatcher:
    return Dispatcher(HttpClient(5.0), EnginePool((url,)), probe=demo_probe())


async def readiness_of(tokenizer) -> tuple[bool, Exception | None]:
    async with TestServer(DemoEngine(DemoModel(tokenizer)).application()) as server:
        backend = ENGINES["sglang-generate"](dispatcher(str(server.make_url(""))))
        async with started(backend):
            return await backend.ready(), await failure_of(backend)


async def failure_of(backend: Backend) -> Exception | None:
    try:
        await backend.generate(make_request([1, 2, 3]))
    except errors.TitoError as error:
        return error
    return None


async def test_the_same_tokenizer_is_ready():
    ready, _ = await readiness_of(load_tokenizer(str(DEMO_MODEL)))
    assert ready


async def test_another_tokenizer_fails_readiness_and_every_generation():
    ready, error = await readiness_of(ToyTokenizer())
    assert not ready
    assert isinstance(error, errors.EngineTokenMismatch)
    assert "another tokenizer" in str(error)


async def test_a_server_that_does_not_say_what_it_is_is_not_asked():
    async with FakeEngine() as engine, started(ENGINES["sglang"](dispatcher(engine.url))) as backend:
        assert await backend.ready()
    assert {received.method for received in engine.requests} == {"GET"}


async def test_before_readiness_is_asked_nothing_is_compared():
    async with FakeEngine() as engine, started(ENGINES["sglang"](dispatcher(engine.url))) as backend:
        assert (await backend.generate(make_request())).ids.size
    assert len(engine.requests) == 1


def test_the_probe_is_our_own_spelling_of_the_sentence():
    probe = demo_probe()
    assert probe.sentence == SENTENCE
    assert SENTENCE in load_tokenizer(str(DEMO_MODEL)).decode(probe.ids)
    assert probe.ids.dtype == np.int32


@pytest.mark.parametrize("reply", [b"[]", b"{}", b'{"text": 1}', b"nonsense"])
async def test_an_odd_answer_counts_as_not_asked(reply):
    async with FakeEngine() as engine:
        engine.script(Status(200, {}, b'{"model_path": "m"}'), Status(404, {}, b""), Status(200, {}, reply))
        async with started(ENGINES["sglang"](dispatcher(engine.url))) as backend:
            assert await backend.ready()
    assert engine.requests[-1].path == "/detokenize"
