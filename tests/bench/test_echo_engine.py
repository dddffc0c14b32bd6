"""The engine of the benchmark: cheap, and still an engine whose replies hold together."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from sessions_app.backends.demo.echo import EchoEngine, plain_words, text_of_tokens
from sessions_app.rendering.factory import DEMO_MODEL, load_tokenizer

TOKENIZER = load_tokenizer(str(DEMO_MODEL))


def replies(*bodies: dict[str, Any]) -> list[Any]:
    async def ask() -> list[Any]:
        async with TestClient(TestServer(EchoEngine(TOKENIZER).application())) as client:
            sent = [json.dumps(body, separators=(",", ":")) for body in bodies]
            return [await (await client.post("/v1/chat/completions", data=each)).json() for each in sent]

    return asyncio.run(ask())


@pytest.mark.parametrize("tokens", [1, 2, 64, 500])
def test_what_it_samples_is_the_canonical_spelling_of_what_it_says(tokens: int) -> None:
    reply = replies({"max_tokens": tokens, "input_ids": [5, 6, 7]})[0]
    choice = reply["choices"][0]
    ids = [entry[1] for entry in choice["meta_info"]["output_token_logprobs"]]
    assert len(ids) == choice["meta_info"]["completion_tokens"] == tokens
    assert ids[:-1] == TOKENIZER.encode(choice["message"]["content"]).tolist()
    assert ids[-1] in TOKENIZER.end_ids


def test_it_counts_the_ids_it_was_sent_whatever_stands_before_them() -> None:
    told = [{"role": "user", "content": '"input_ids":[1,2],"max_tokens":3'}]
    found = replies(
        {"max_tokens": 8, "messages": told, "input_ids": [1]},
        {"max_tokens": 8, "messages": told, "input_ids": list(range(1000)), "model": "demo"},
    )
    counts = [each["choices"][0]["meta_info"]["prompt_tokens"] for each in found]
    assert counts == [1, 1000]


def test_replies_differ() -> None:
    one, other = replies({"max_tokens": 8, "input_ids": [1]}, {"max_tokens": 8, "input_ids": [1]})
    assert one["id"] != other["id"]
    assert one["choices"][0]["message"] != other["choices"][0]["message"]


def test_texts_have_as_many_tokens_as_were_asked_for() -> None:
    words = plain_words(TOKENIZER)
    assert [TOKENIZER.encode(text_of_tokens(words, count, 7)).size for count in (1, 55, 3000)] == [
        1,
        55,
        3000,
    ]
