"""Each fault of the table against each engine: one typed error with its code, never a generation."""

from collections.abc import Callable

import pytest

from sessions_app import errors
from sessions_app.backends.base import Backend
from sessions_app.backends.demo.faults import FAULTS
from sessions_app.backends.dispatch import Dispatcher
from sessions_app.backends.sglang import ChatFlags, SglangChat
from tests.backends.requests import VOCAB_SIZE, make_dispatcher, make_request, started
from tests.fakes.engine import FakeEngine, Reply

ENGINES: dict[str, Callable[[Dispatcher], Backend]] = {
    "sglang": lambda dispatcher: SglangChat(dispatcher, VOCAB_SIZE, ChatFlags()),
}

EXPECTED: dict[str, type[errors.TitoError]] = {
    "400": errors.UpstreamStatus,
    "429": errors.UpstreamStatus,
    "500": errors.UpstreamStatus,
    "503": errors.UpstreamStatus,
    "wrong_length": errors.UpstreamTokenCountMismatch,
    "missing_token_ids": errors.UpstreamMissingTokenIds,
    "missing_logprobs": errors.UpstreamMissingTokenIds,
    "missing_completion_tokens": errors.UpstreamInvalidReply,
    "missing_finish_reason": errors.UpstreamInvalidReply,
    "missing_choices": errors.UpstreamMissingTokenIds,
    "empty_choices": errors.UpstreamInvalidReply,
    "null_content": errors.UpstreamNullContent,
    "nan_logprob": errors.UpstreamInvalidLogprob,
    "null_logprob": errors.UpstreamInvalidLogprob,
    "id_out_of_range": errors.EngineTokenMismatch,
    "wrong_prompt_tokens": errors.EngineTokenMismatch,
    "malformed_json": errors.UpstreamInvalidReply,
    "not_object": errors.UpstreamInvalidReply,
    "cut": errors.UpstreamUnreachable,
    "cut_body": errors.UpstreamUnreachable,
    "hang": errors.UpstreamTimeout,
}


def test_every_fault_of_the_table_has_an_expected_error():
    assert set(EXPECTED) == set(FAULTS) - {"slow"}


@pytest.mark.parametrize("fault", EXPECTED)
@pytest.mark.parametrize("name", ENGINES)
async def test_a_fault_becomes_its_typed_error(name, fault):
    async with FakeEngine() as engine:
        engine.script(Reply(ids=[104, 105, 258], text="hi", fault=fault))
        timeout_s = 0.2 if fault == "hang" else 5.0
        async with started(ENGINES[name](make_dispatcher(engine.url, timeout_s=timeout_s))) as backend:
            with pytest.raises(errors.TitoError) as caught:
                await backend.generate(make_request())
    assert type(caught.value) is EXPECTED[fault]
    assert "hi" not in str(caught.value).split()
    assert len(engine.requests) == 1


@pytest.mark.parametrize("name", ENGINES)
async def test_after_a_fault_the_next_generation_is_fine(name):
    async with FakeEngine() as engine:
        engine.script("cut", Reply(ids=[104, 105, 258]))
        async with started(ENGINES[name](make_dispatcher(engine.url))) as backend:
            with pytest.raises(errors.UpstreamUnreachable):
                await backend.generate(make_request())
            assert (await backend.generate(make_request())).ids.tolist() == [104, 105, 258]


@pytest.mark.parametrize("name", ENGINES)
async def test_a_refused_connection_is_unreachable_and_retryable(name):
    async with started(ENGINES[name](make_dispatcher("http://127.0.0.1:9"))) as backend:
        with pytest.raises(
            errors.UpstreamUnreachable, match="ConnectError: All connection attempts failed"
        ) as got:
            await backend.generate(make_request())
    assert got.value.retryable
    assert got.value.status == 502
