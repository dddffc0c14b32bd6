"""The demo engine behind the real backend: what it plays, how it samples, and that its faults are real."""

import random

import aiohttp
import numpy as np
import pytest
from aiohttp.test_utils import TestServer

from sessions_app import errors
from sessions_app.backends.base import Generation
from sessions_app.backends.demo import assistant, conversation, reply_parser, sampler
from sessions_app.backends.demo.model import DemoModel
from sessions_app.backends.demo.server import DemoEngine
from sessions_app.backends.flags import EngineFlags
from sessions_app.backends.sglang import SglangChat
from tests.backends.requests import make_dispatcher, make_request, started
from tests.backends.toy_tokenizer import ToyTokenizer

TOOLS = (
    "You are helpful.\n<tools>\n"
    '{"type": "function", "function": {"name": "calculator", "parameters": {"type": "object", "properties":'
    ' {"expression": {"type": "string"}}}}}\n'
    '{"type": "function", "function": {"name": "list_files", "parameters": {"type": "object", "properties":'
    ' {"path": {"type": "string"}}}}}\n</tools>'
)
TOKENIZER = ToyTokenizer()


def chatml(*turns: tuple[str, str], opener: str = "<|im_start|>assistant\n") -> str:
    return "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in turns) + opener


async def ask(prompt: str, engine: DemoEngine | None = None, **body: object) -> Generation:
    engine = engine or DemoEngine(DemoModel(TOKENIZER))
    async with TestServer(engine.application()) as server:
        dispatcher = make_dispatcher(str(server.make_url("")).rstrip("/"), timeout_s=2.0)
        backend = SglangChat(dispatcher, TOKENIZER.vocab_size, EngineFlags(), name="demo")
        async with started(backend):
            request = make_request(TOKENIZER.encode(prompt).tolist(), body={"messages": [], **body})
            return await backend.generate(request)


async def test_arithmetic_with_a_tool_on_offer_becomes_a_call():
    done = await ask(chatml(("system", TOOLS), ("user", "What is 12*7?")), seed=1)
    assert done.finish_reason == "tool_calls"
    assert done.message is not None
    (call,) = done.message["tool_calls"]
    assert call["function"]["name"] == "calculator"
    assert "12 * 7" in call["function"]["arguments"]


async def test_two_wishes_become_parallel_calls():
    done = await ask(chatml(("system", TOOLS), ("user", "2+2, 3+3 and list the files in /tmp")), seed=1)
    assert done.message is not None
    names = [call["function"]["name"] for call in done.message["tool_calls"]]
    assert names == ["calculator", "calculator", "list_files"]
    assert [call["index"] for call in done.message["tool_calls"]] == [0, 1, 2]


async def test_results_are_used_in_a_text_answer():
    turns = [
        ("system", TOOLS),
        ("user", "2+2?"),
        ("assistant", "…"),
        ("user", "<tool_response>\n4711\n</tool_response>"),
    ]
    done = await ask(chatml(*turns), seed=1)
    assert done.finish_reason == "stop"
    assert done.message is not None
    assert "4711" in done.message["content"]
    assert not done.message["tool_calls"]


async def test_without_tools_there_is_no_call():
    done = await ask(chatml(("user", "What is 12*7?")), seed=1)
    assert done.message is not None
    assert not done.message["tool_calls"]


async def test_reasoning_is_split_off_wherever_the_block_was_opened():
    done = await ask(chatml(("user", "Hi"), opener="<|im_start|>assistant\n<think>\n"), seed=1)
    assert done.message is not None
    assert done.message["reasoning_content"]
    assert "</think>" not in done.message["content"]
    closed = await ask(
        chatml(("user", "Hi"), opener="<|im_start|>assistant\n<think>\n\n</think>\n\n"), seed=1
    )
    assert closed.message is not None
    assert closed.message["reasoning_content"] is None


async def test_the_same_seed_gives_the_same_ids_and_none_gives_others():
    prompt = chatml(("user", "Tell me something about rivers, bridges and boats."))
    engine = DemoEngine(DemoModel(TOKENIZER))
    seeded = [(await ask(prompt, engine, seed=3)).ids.tolist() for _ in range(2)]
    free = [(await ask(prompt, engine)).ids.tolist() for _ in range(2)]
    assert seeded[0] == seeded[1]
    assert free[0] != free[1]


@pytest.mark.parametrize("seed", range(20))
def test_samples_decode_to_the_text_and_are_rarely_canonical(seed):
    text = '<think>\nthe other thing is in the hole.\n</think>\n\nhello, the ring is on: {"a": 1}\n\n ✓ naïve'
    ids = sampler.sample_ids(text, TOKENIZER, random.Random(seed))
    assert TOKENIZER.decode(np.asarray(ids, dtype=np.int32)) == text
    assert ids != TOKENIZER.encode(text).tolist()


def test_logprobs_look_like_an_engines():
    values = sampler.sample_logprobs(1000, random.Random(1))
    assert all(value < 0 and float(np.float32(value)) == value for value in values)


async def test_max_tokens_cuts_by_length_and_a_stop_string_ends_early():
    prompt = chatml(("user", "Hello there"))
    cut = await ask(prompt, seed=1, max_tokens=3)
    assert (cut.finish_reason, cut.ids.size) == ("length", 3)
    stopped = await ask(prompt, seed=1, stop=["You said"])
    assert stopped.finish_reason == "stop"
    assert stopped.message is not None
    assert "You said" not in stopped.message["content"]
    assert "You said" in TOKENIZER.decode(stopped.ids)
    assert int(stopped.ids[-1]) not in TOKENIZER.end_ids


async def test_the_prefix_cache_is_reported():
    engine = DemoEngine(DemoModel(TOKENIZER))
    first = await ask(chatml(("user", "Hi")), engine)
    second = await ask(chatml(("user", "Hi"), ("user", "again")), engine)
    assert first.cached_tokens == 0
    assert second.cached_tokens > 5


async def test_replay_rows_have_the_size_of_the_context():
    done = await ask(chatml(("user", "Hi")), return_routed_experts=True, routed_experts_start_len=4)
    rows = TOKENIZER.encode(chatml(("user", "Hi"))).size + done.ids.size - 1 - 4
    assert len(done.side["routed_experts"]) == rows * 2 * 2 * 4


async def test_faults_can_be_switched_on_for_a_number_of_times():
    engine = DemoEngine(DemoModel(TOKENIZER))
    engine.set_fault("503", times=1)
    with pytest.raises(errors.UpstreamStatus):
        await ask(chatml(("user", "Hi")), engine)
    assert (await ask(chatml(("user", "Hi")), engine)).ids.size


async def test_faults_and_weights_are_switched_over_http():
    engine = DemoEngine(DemoModel(TOKENIZER))
    async with (
        TestServer(engine.application()) as server,
        aiohttp.ClientSession(server.make_url("/")) as http,
    ):
        assert (await http.post("/fault", json={"name": "nonsense"})).status == 400
        assert (await http.post("/fault", json={"name": "500"})).status == 200
        assert (await http.post("/generate", json={"input_ids": [1]})).status == 500
        assert (await http.post("/fault", json={"name": ""})).status == 200
        assert (await http.post("/weights", json={"version": "2"})).status == 200
        reply = await (await http.post("/generate", json={"input_ids": [1]})).json()
        assert reply["meta_info"]["weight_version"] == "2"


async def test_bad_requests_are_refused_as_engines_do():
    engine = DemoEngine(DemoModel(TOKENIZER), context_length=8)
    bodies: list[object] = [None, [], {}, {"input_ids": "x"}, {"input_ids": [10**9]}, {"input_ids": [1] * 8}]
    bodies.append({"input_ids": [1], "max_tokens": 0})
    async with (
        TestServer(engine.application()) as server,
        aiohttp.ClientSession(server.make_url("/")) as http,
    ):
        for body in bodies:
            assert (await http.post("/v1/chat/completions", json=body)).status == 400


def test_malformed_calls_stay_text():
    text = 'x\n<tool_call>\n{"name": "ls", \n</tool_call>'
    assert reply_parser.parse(text, "1", thinking_open=False)["content"] == text


def test_any_text_is_a_conversation():
    talk = conversation.read("no markers at all")
    assert talk.turns == (conversation.Turn("user", "no markers at all"),)
    assert assistant.reply(talk, random.Random(0))
