"""Backend `sglang`: the outgoing body and headers, the accepted reply, and what passes through."""

import base64
import json
from typing import Any

import numpy as np
import pytest

from sessions_app import errors
from sessions_app.backends.base import Backend, Generation
from sessions_app.backends.demo.faults import Status
from sessions_app.backends.flags import EngineFlags
from sessions_app.backends.reply import client_reply
from sessions_app.backends.sglang import SglangChat
from tests.backends.requests import MESSAGES, SESSION, VOCAB_SIZE, make_dispatcher, make_request, started
from tests.fakes.engine import FakeEngine, Reply

PLAIN = EngineFlags()


def backend_for(*urls: str, flags: EngineFlags = PLAIN, timeout_s: float = 5.0) -> Backend:
    return SglangChat(make_dispatcher(*urls, timeout_s=timeout_s), VOCAB_SIZE, flags)


async def generate(engine: FakeEngine, flags: EngineFlags = PLAIN, **changes: Any) -> Generation:
    async with started(backend_for(engine.url, flags=flags)) as backend:
        return await backend.generate(make_request(**changes))


async def test_the_body_adds_the_forced_fields_in_the_contracts_order():
    async with FakeEngine() as engine:
        await generate(engine, template_kwargs={"clear_thinking": False})
    sent = engine.bodies[0]
    assert list(sent) == [
        "messages", "logprobs", "return_meta_info", "no_stop_trim", "chat_template_kwargs", "input_ids"
    ]  # fmt: skip
    assert sent["messages"] == MESSAGES
    assert (sent["logprobs"], sent["return_meta_info"], sent["no_stop_trim"]) == (True, True, False)
    assert sent["input_ids"] == [257, 104, 105, 258]


async def test_keys_that_the_client_sent_keep_their_place_and_lose_their_value():
    body = {"logprobs": False, "input_ids": [1], "messages": MESSAGES, "temperature": 0.5, "stream": True}
    async with FakeEngine() as engine:
        await generate(engine, body=body)
    sent = engine.bodies[0]
    assert list(sent) == [
        "logprobs", "input_ids", "messages", "temperature", "return_meta_info", "no_stop_trim"
    ]  # fmt: skip
    assert sent["logprobs"] is True
    assert sent["input_ids"] == [257, 104, 105, 258]
    assert sent["temperature"] == 0.5


async def test_replay_flags_and_adapter_come_from_the_configuration():
    flags = EngineFlags(routing_replay=True, indexer_replay=True, lora_path="miles_lora")
    async with FakeEngine() as engine:
        await generate(engine, flags, body={"messages": [], "lora_path": "mine"}, routed_experts_start_len=3)
    assert list(engine.bodies[0]) == [
        "messages", "lora_path", "logprobs", "return_meta_info", "return_routed_experts",
        "return_indexer_topk", "no_stop_trim", "input_ids", "routed_experts_start_len",
    ]  # fmt: skip
    assert engine.bodies[0]["lora_path"] == "miles_lora"
    assert engine.bodies[0]["routed_experts_start_len"] == 3


async def test_without_replay_the_clients_own_values_pass():
    body = {"messages": [], "return_routed_experts": 1, "lora_path": "mine", "chat_template_kwargs": None}
    async with FakeEngine() as engine:
        await generate(engine, body=body)
    assert engine.bodies[0]["return_routed_experts"] == 1
    assert engine.bodies[0]["lora_path"] == "mine"
    assert "chat_template_kwargs" not in engine.bodies[0]


async def test_huge_numbers_surrogates_and_nan_reach_the_engine_unaltered():
    body = {"messages": [{"role": "user", "content": "\ud800"}], "seed": 10**30, "temperature": float("nan")}
    async with FakeEngine() as engine:
        await generate(engine, body=body)
    sent = engine.bodies[0]
    assert sent["messages"][0]["content"] == "\ud800"
    assert sent["seed"] == 10**30
    assert sent["temperature"] != sent["temperature"]


async def test_one_routing_key_and_no_hop_by_hop_header_reach_the_engine():
    headers = {
        "x-smg-routing-key": "mine",
        "connection": "keep-alive, x-private",
        "x-private": "1",
        "transfer-encoding": "chunked",
        "content-length": "999",
        "host": "elsewhere",
        "accept-encoding": "br, zstd",
        "authorization": "Bearer abc",
        "x-custom": "kept",
        "content-type": "application/json",
    }
    async with FakeEngine() as engine:
        await generate(engine, headers=headers, query="a=1&b=%20x")
    received = engine.requests[0]
    assert [value for name, value in received.header_lines if name == "x-smg-routing-key"] == [SESSION]
    assert received.headers["x-custom"] == "kept"
    assert received.headers["authorization"] == "Bearer abc"
    assert received.headers["host"] == engine.url.removeprefix("http://")
    assert "zstd" not in received.headers.get("accept-encoding", "")
    assert not {"x-private", "transfer-encoding"} & set(received.headers)
    assert received.query == "a=1&b=%20x"


async def test_a_good_reply_becomes_arrays_and_keeps_its_text():
    async with FakeEngine() as engine:
        engine.script(
            Reply(
                [104, 105, 258], weight_version="9", cached_tokens=2, meta={"spec_accept": 4}, identity="mine"
            )
        )
        done = await generate(engine)
    assert done.ids.dtype == np.int32
    assert done.ids.tolist() == [104, 105, 258]
    assert done.logprobs.dtype == np.float64
    assert done.logprobs.tolist() == [-1 / 64, -2 / 64, -3 / 64]
    assert (done.finish_reason, done.raw_finish_reason) == ("stop", "stop")
    assert (done.response_id, done.weight_version, done.cached_tokens) == ("mine", "9", 2)
    assert (done.prompt_tokens, done.completion_tokens, done.engine_seconds) == (4, 3, 0.25)
    assert done.extras == {"spec_accept": 4}
    assert json.loads(done.reply_text) == done.reply
    assert done.message == {"role": "assistant", "content": "ok"}
    assert done.worker == engine.url


async def test_an_empty_completion_and_a_null_finish_reason_are_accepted():
    async with FakeEngine() as engine:
        engine.script(Reply(ids=[], text="", finish=None))
        done = await generate(engine)
    assert done.ids.size == 0
    assert (done.finish_reason, done.raw_finish_reason) == ("", None)


async def test_replay_payloads_leave_the_reply_and_are_kept_as_bytes():
    rows = np.arange(6, dtype="<i4").tobytes()
    meta = {"routed_experts": base64.b64encode(rows).decode(), "indexer_topk": None}
    async with FakeEngine() as engine:
        engine.script(Reply(ids=[104, 258], meta=meta))
        done = await generate(engine)
    assert done.side == {"routed_experts": rows}
    assert done.reply is not None
    assert done.reply["choices"][0]["meta_info"]["routed_experts"] is None  # its place is kept
    assert "indexer_topk" not in client_reply(done.reply)["choices"][0]["meta_info"]


@pytest.mark.parametrize("status", [201, 302, 400, 401, 404, 429, 500, 503])
async def test_any_other_status_passes_through_once_with_its_headers(status):
    async with FakeEngine() as engine:
        engine.script(Status(status, {"retry-after": "0", "x-up": "1", "content-type": "text/plain"}, b"no"))
        with pytest.raises(errors.UpstreamStatus) as caught:
            await generate(engine)
    assert (caught.value.status, caught.value.body) == (status, b"no")
    assert caught.value.headers["x-up"] == "1"
    assert caught.value.retryable == (status in (429, 500, 503))
    assert len(engine.requests) == 1


async def test_huge_integers_of_a_reply_survive():
    async with FakeEngine() as engine:
        engine.script(Reply(ids=[104], meta={"big": 10**25, "far": float("inf")}))
        done = await generate(engine)
    assert done.reply is not None
    assert done.reply["choices"][0]["meta_info"]["big"] == 10**25


async def test_two_sources_of_the_ids_must_agree():
    async with FakeEngine() as engine:
        engine.script(
            Status(200, {}, _with_token_ids([104, 258])), Status(200, {}, _with_token_ids([104, 99]))
        )
        assert (await generate(engine)).ids.tolist() == [104, 258]
        with pytest.raises(errors.UpstreamTokenCountMismatch, match="token_ids"):
            await generate(engine)


async def test_an_engine_that_saw_another_prompt_is_refused():
    async with FakeEngine() as engine:
        engine.script(Status(200, {}, _with_token_ids([104, 258], prompt_token_ids=[257, 104, 105, 9])))
        with pytest.raises(errors.EngineTokenMismatch, match="prompt_token_ids"):
            await generate(engine)


async def test_usage_that_counts_otherwise_is_refused():
    async with FakeEngine() as engine:
        engine.script(Status(200, {}, _with_token_ids([104, 258], usage={"completion_tokens": 4})))
        with pytest.raises(errors.UpstreamTokenCountMismatch):
            await generate(engine)


@pytest.mark.parametrize(("told", "shown"), [(None, "None"), ("2", "2"), (3, "3")])
async def test_a_count_that_is_not_the_lists_length_is_told_in_the_references_words(told, shown):
    async with FakeEngine() as engine:
        engine.script(Status(200, {}, _with_token_ids([104, 258], meta={"completion_tokens": told})))
        with pytest.raises(errors.UpstreamTokenCountMismatch) as caught:
            await generate(engine)
    assert str(caught.value).startswith(
        "invalid chat completion response:"
        f" len(output_token_logprobs)=2 != completion_tokens={shown}. Please check"
    )


@pytest.mark.parametrize(
    ("raw", "normal"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("abort", "abort"),
        (None, ""),
        *((word, "error") for word in ("function_call", "max_tokens", "eos", "cancelled", "LENGTH", "")),
    ],
)
async def test_only_the_known_words_end_a_turn_as_they_say(raw, normal):
    async with FakeEngine() as engine:
        engine.script(Status(200, {}, _with_token_ids([104, 258], {"finish_reason": raw})))
        done = await generate(engine)
    assert (done.finish_reason, done.raw_finish_reason) == (normal, raw)


@pytest.mark.parametrize("place", ["top", "choice"])
async def test_replay_payloads_of_newer_builds_are_taken_from_sglext(place):
    rows = np.arange(6, dtype="<i4").tobytes()
    block = {"routed_experts": base64.b64encode(rows).decode(), "cached_tokens_details": {"device": 3}}
    top, choice = ({"sglext": block}, {}) if place == "top" else ({}, {"sglext": block})
    async with FakeEngine() as engine:
        engine.script(Status(200, {}, _with_token_ids([104, 258], choice, **top)))
        done = await generate(engine)
    assert done.side == {"routed_experts": rows}
    shown = json.dumps(client_reply(done.reply))
    assert "routed_experts" not in shown
    assert "cached_tokens_details" in shown


async def test_two_sources_of_replay_rows_must_agree():
    meta = {"routed_experts": base64.b64encode(bytes(4)).decode()}
    async with FakeEngine() as engine:
        for other in (bytes(4), bytes(8)):
            block = {"routed_experts": base64.b64encode(other).decode()}
            engine.script(Status(200, {}, _with_token_ids([104, 258], meta=meta, sglext=block)))
        assert (await generate(engine)).side == {"routed_experts": bytes(4)}
        with pytest.raises(errors.UpstreamInvalidReply, match="routed_experts"):
            await generate(engine)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"input_ids": [257, 104, 105, 258], "output_ids": [[104, 258]]}, None),
        ({"output_ids": [104, 258]}, None),
        ("odd", None),
        ({"input_ids": [257, 104, 105]}, errors.EngineTokenMismatch),
        ({"output_ids": [[104, 99]]}, errors.UpstreamTokenCountMismatch),
        ({"output_ids": [[104, 258], [104, 258]]}, errors.UpstreamTokenCountMismatch),
        ({"output_ids": "104"}, errors.UpstreamTokenCountMismatch),
    ],
)
async def test_ids_of_sglext_are_a_second_source(block, expected):
    async with FakeEngine() as engine:
        engine.script(Status(200, {}, _with_token_ids([104, 258], sglext=block)))
        if expected is None:
            assert (await generate(engine)).ids.tolist() == [104, 258]
            return
        with pytest.raises(expected, match="sglext"):
            await generate(engine)


def _with_token_ids(
    token_ids: list[int], choice: dict[str, Any] | None = None, meta: dict[str, Any] | None = None, **top: Any
) -> bytes:
    counted = {"output_token_logprobs": [[-0.1, 104, "h"], [-0.2, 258, None]], "completion_tokens": 2}
    whole = {
        "message": {"content": "h"},
        "finish_reason": "stop",
        "token_ids": token_ids,
        "meta_info": counted | (meta or {}),
        **(choice or {}),
    }
    return json.dumps({"choices": [whole], **top}).encode()
