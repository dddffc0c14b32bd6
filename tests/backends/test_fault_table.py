"""Each fault of the table against each engine: one typed error with its code, never a generation.

Where a protocol does not promise what the fault takes away, the generation is accepted: listed too.
"""

import pytest

from sessions_app import errors
from sessions_app.backends.demo.faults import FAULTS
from tests.backends.engines import ENGINES
from tests.backends.requests import make_dispatcher, make_request, started
from tests.fakes.engine import FakeEngine, Reply

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
EXCEPTIONS: dict[tuple[str, str], type[errors.TitoError] | None] = {
    ("sglang-generate", "empty_choices"): errors.UpstreamMissingTokenIds,
    ("sglang-generate", "null_content"): None,
    ("vllm", "null_content"): None,
    ("vllm-completions", "null_content"): None,
    ("vllm", "missing_completion_tokens"): None,
    ("vllm-completions", "missing_completion_tokens"): None,
    ("vllm-chat", "missing_completion_tokens"): None,
    ("vllm-chat", "wrong_prompt_tokens"): None,
}
"""None = accepted: engines of ids send no message, vLLM promises no usage, a rendering engine may render."""


def test_every_fault_of_the_table_has_an_expected_error():
    assert set(EXPECTED) == set(FAULTS) - {"slow"}


@pytest.mark.parametrize("fault", EXPECTED)
@pytest.mark.parametrize("name", ENGINES)
async def test_a_fault_becomes_its_typed_error(name, fault):
    expected = EXCEPTIONS.get((name, fault), EXPECTED[fault])
    async with FakeEngine() as engine:
        engine.script(Reply(ids=[104, 105, 258], text="hi", fault=fault))
        timeout_s = 0.2 if fault == "hang" else 5.0
        async with started(ENGINES[name](make_dispatcher(engine.url, timeout_s=timeout_s))) as backend:
            if expected is None:
                assert (await backend.generate(make_request())).ids.tolist() == [104, 105, 258]
                return
            with pytest.raises(errors.TitoError) as caught:
                await backend.generate(make_request())
    assert type(caught.value) is expected
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
    text = "ConnectError: All connection attempts failed"
    async with started(ENGINES[name](make_dispatcher("http://127.0.0.1:9"))) as backend:
        with pytest.raises(errors.UpstreamUnreachable, match=text) as caught:
            await backend.generate(make_request())
    assert caught.value.retryable
    assert caught.value.status == 502
