"""The engines of ids only, and the observed one: bodies, second sources, what each accepts."""

import json
import logging
from typing import Any

import numpy as np
import pytest

from sessions_app import errors
from sessions_app.backends.base import Generation
from sessions_app.backends.demo.faults import Status
from sessions_app.backends.flags import EngineFlags
from sessions_app.backends.sglang_generate import SglangGenerate
from tests.backends.engines import ENGINES
from tests.backends.requests import SESSION, VOCAB_SIZE, make_dispatcher, make_request, started
from tests.fakes.engine import FakeEngine, Reply

PROMPT = [257, 104, 105, 258]
TOKEN_ENGINES = ["sglang-generate", "vllm", "vllm-completions"]


async def generate(name: str, engine: FakeEngine, **changes: Any) -> Generation:
    async with started(ENGINES[name](make_dispatcher(engine.url))) as backend:
        return await backend.generate(make_request(**changes))


async def test_sglang_generate_sends_the_canonical_sampling_dict():
    body = {"messages": [], "temperature": 0.7, "stop": ["x"], "max_tokens": 9, "top_k": None}
    async with FakeEngine() as engine:
        await generate("sglang-generate", engine)
        await generate("sglang-generate", engine, body=body)
    first, second = engine.bodies
    assert engine.requests[0].path == "/generate"
    assert list(first) == ["rid", "input_ids", "sampling_params", "return_logprob", "stream"]
    assert first["input_ids"] == PROMPT
    assert first["sampling_params"] == {
        "skip_special_tokens": False,
        "spaces_between_special_tokens": False,
        "no_stop_trim": True,
        "max_new_tokens": 4096,
    }
    assert second["sampling_params"]["max_new_tokens"] == 9
    assert second["sampling_params"]["temperature"] == 0.7
    assert second["sampling_params"]["stop"] == ["x"]
    assert "top_k" not in second["sampling_params"]
    assert first["rid"] != second["rid"]


async def test_sglang_generate_carries_the_configured_riders():
    flags = EngineFlags(routing_replay=True, lora_path="a")
    async with (
        FakeEngine() as engine,
        started(SglangGenerate(make_dispatcher(engine.url), VOCAB_SIZE, flags)) as backend,
    ):
        await backend.generate(make_request(routed_experts_start_len=2))
    sent = engine.bodies[0]
    assert (sent["lora_path"], sent["return_routed_experts"], sent["routed_experts_start_len"]) == (
        "a",
        True,
        2,
    )


@pytest.mark.parametrize(
    ("output_ids", "accepted"),
    [([104, 258], True), ([257, 105, 104, 258], True), (None, True), ([104, 99], False), ([258], False)],
)
async def test_output_ids_may_hold_the_prompts_tail_but_not_other_ids(output_ids, accepted):
    meta = {
        "output_token_logprobs": [[-0.5, 104, None], [-0.25, 258, None]],
        "completion_tokens": 2,
        "finish_reason": {"type": "stop", "matched": 258},
    }
    body = json.dumps({"text": "h", "output_ids": output_ids, "meta_info": meta}).encode()
    async with FakeEngine() as engine:
        engine.script(Status(200, {}, body))
        if not accepted:
            with pytest.raises(errors.UpstreamTokenCountMismatch, match="output_ids"):
                await generate("sglang-generate", engine)
            return
        done = await generate("sglang-generate", engine)
    assert done.ids.tolist() == [104, 258]
    assert done.logprobs.tolist() == [-0.5, -0.25]
    assert done.extras["matched_stop"] == 258
    assert done.prompt_tokens is None


async def test_vllm_sends_ids_and_asks_for_logprobs():
    body = {"messages": [], "seed": 4, "max_completion_tokens": 5, "max_tokens": 7, "cache_salt": "s"}
    async with FakeEngine() as engine:
        await generate("vllm", engine, body=body, headers={"x-session-id": "mine"})
    sent = engine.bodies[0]
    assert engine.requests[0].path == "/inference/v1/generate"
    assert sent["token_ids"] == PROMPT
    assert sent["sampling_params"] == {
        "max_tokens": 5,
        "seed": 4,
        "logprobs": 1,
        "skip_special_tokens": False,
    }
    assert (sent["stream"], sent["cache_salt"]) == (False, "s")
    lines = [value for name, value in engine.requests[0].header_lines if name == "x-session-id"]
    assert lines == [SESSION]


async def test_vllm_completions_sends_the_prompt_as_ids():
    async with FakeEngine() as engine:
        await generate("vllm-completions", engine, body={"model": "m", "temperature": 0, "stream": True})
    sent = engine.bodies[0]
    assert engine.requests[0].path == "/v1/completions"
    assert sent["prompt"] == PROMPT
    assert (sent["model"], sent["temperature"], sent["max_tokens"]) == ("m", 0, 4096)
    assert sent["return_token_ids"] is True
    assert sent["add_special_tokens"] is False
    assert sent["stream"] is False


def completion(**choice: Any) -> bytes:
    tokens = {"tokens": ["token_id:104", "token_id:258"], "token_logprobs": [-0.5, -0.25]}
    body = {"finish_reason": "stop", "text": "h", "logprobs": tokens, **choice}
    return json.dumps({"id": "c", "choices": [body], "usage": {"prompt_tokens": 4}}).encode()


async def test_vllm_completions_reads_ids_from_token_names_of_older_servers():
    async with FakeEngine() as engine:
        engine.script(Status(200, {}, completion()))
        assert (await generate("vllm-completions", engine)).ids.tolist() == [104, 258]


@pytest.mark.parametrize(
    ("choice", "error"),
    [
        ({"token_ids": [104, 99]}, errors.UpstreamTokenCountMismatch),
        ({"prompt_token_ids": [1, 2, 3, 4]}, errors.EngineTokenMismatch),
        (
            {"logprobs": {"tokens": ["h", "<s>"], "token_logprobs": [-1.0, -2.0]}},
            errors.UpstreamMissingTokenIds,
        ),
        ({"logprobs": None}, errors.UpstreamMissingTokenIds),
        ({"token_ids": [104]}, errors.UpstreamTokenCountMismatch),
    ],
)
async def test_vllm_completions_refuses_sources_that_disagree(choice, error):
    async with FakeEngine() as engine:
        engine.script(Status(200, {}, completion(**choice)))
        with pytest.raises(error):
            await generate("vllm-completions", engine)


async def test_a_missing_vllm_logprob_is_an_error_and_never_zero():
    choice = {"token_ids": [104], "logprobs": {"content": [{"token": "h"}]}, "finish_reason": "stop"}
    async with FakeEngine() as engine:
        engine.script(Status(200, {}, json.dumps({"choices": [choice]}).encode()))
        with pytest.raises(errors.UpstreamInvalidLogprob):
            await generate("vllm", engine)


@pytest.mark.parametrize(
    ("names", "accepted"),
    [
        (["token_id:104", "token_id:258"], True),
        (["h", "token_id:258"], True),
        (["h", None], True),
        (["token_id:" + "9" * 5000] * 2, True),
        (["token_id:258", "token_id:104"], False),
    ],
)
async def test_names_beside_vllms_logprobs_are_a_second_source(names, accepted):
    content = [{"token": name, "logprob": -0.5} for name in names]
    choice = {"token_ids": [104, 258], "logprobs": {"content": content}, "finish_reason": "stop"}
    async with FakeEngine() as engine:
        engine.script(Status(200, {}, json.dumps({"choices": [choice]}).encode()))
        if accepted:
            assert (await generate("vllm", engine)).ids.tolist() == [104, 258]
            return
        with pytest.raises(errors.UpstreamTokenCountMismatch):
            await generate("vllm", engine)


@pytest.mark.parametrize("name", TOKEN_ENGINES)
async def test_engines_of_ids_leave_the_message_to_the_renderer(name):
    async with FakeEngine() as engine:
        engine.script(Reply(ids=[104, 258], finish="length"))
        done = await generate(name, engine)
    assert done.message is None
    assert done.reply is None
    assert (done.ids.tolist(), done.finish_reason, done.prompt_tokens) == ([104, 258], "length", 4)
    assert done.logprobs.tolist() == [-1 / 64, -2 / 64]


@pytest.mark.parametrize("name", TOKEN_ENGINES)
async def test_unknown_sampling_fields_are_dropped_with_one_warning(name, caplog):
    body = {"messages": [], "mirostat": 2, "user": "u", "temperature": 1}
    async with FakeEngine() as engine, started(ENGINES[name](make_dispatcher(engine.url))) as backend:
        with caplog.at_level(logging.WARNING):
            await backend.generate(make_request(body=body))
            await backend.generate(make_request(body=body))
    assert [record.getMessage() for record in caplog.records] == [
        f"{name} knows no field 'mirostat': it is dropped from every request"
    ]
    assert b"mirostat" not in engine.requests[0].raw


async def test_vllm_chat_reports_the_prompt_it_rendered():
    async with FakeEngine() as engine:
        engine.script(Reply(ids=[104, 258], prompt_ids=PROMPT), Reply(ids=[104, 258], prompt_ids=[1, 2]))
        same = await generate("vllm-chat", engine, template_kwargs={"enable_thinking": False})
        other = await generate("vllm-chat", engine)
    assert same.prompt_ids is None
    assert other.prompt_ids is not None
    assert other.prompt_ids.tolist() == [1, 2]
    assert other.prompt_tokens == 2
    sent = engine.bodies[0]
    assert "input_ids" not in sent
    assert (sent["logprobs"], sent["return_token_ids"]) == (True, True)
    assert sent["chat_template_kwargs"] == {"enable_thinking": False}


@pytest.mark.parametrize(
    "message",
    [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "1", "function": {"arguments": '{"a": '}}],
        },
        {"role": "assistant", "content": None, "reasoning": "hm"},
        {"role": "assistant", "content": ""},
    ],
)
async def test_vllm_chat_accepts_null_content_beside_calls_or_reasoning(message):
    async with FakeEngine() as engine:
        engine.script(Reply(ids=[104, 258], message=message, finish="tool_calls"))
        done = await generate("vllm-chat", engine)
    assert done.message == message
    assert done.ids.dtype == np.int32


async def test_vllm_chat_without_the_prompts_ids_is_refused():
    choice = {"message": {"content": "h"}, "token_ids": [104], "finish_reason": "stop"}
    choice["logprobs"] = {"content": [{"logprob": -0.5}]}
    async with FakeEngine() as engine:
        engine.script(Status(200, {}, json.dumps({"choices": [choice]}).encode()))
        with pytest.raises(errors.UpstreamMissingTokenIds, match="prompt_token_ids"):
            await generate("vllm-chat", engine)
