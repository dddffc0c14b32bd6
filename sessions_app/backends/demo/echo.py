"""The demo engine with nothing in it: the same reply each time, at next to no cost, for benchmarks.

Speaks SGLang's chat endpoint. Invariant: what it says it sampled is the canonical spelling of the message it
sends along, as long as the request's `max_tokens` asks for.
"""

import asyncio
import itertools
import json
import random
import re
from collections.abc import Sequence
from functools import lru_cache

from aiohttp import web

from sessions_app.backends.demo import sampler
from sessions_app.backends.demo.model import DemoTokenizer
from sessions_app.backends.demo.wire import json_response

_IDS = b'"input_ids":['
_WANTED = re.compile(rb'"max_tokens":(\d+)')
_DEFAULT_TOKENS = 64
_KINDS = 16
"""Different replies, told one after the other."""
_WORDS = (
    "the of and to in is it that for on with as are this be at one have from or by not but what all when "
    "there can an each which do how if will up out then them some so would make like into time has two more "
    "no way could my than first been who its now find long down day did get come made may part"
)


def plain_words(tokenizer: DemoTokenizer) -> tuple[str, ...]:
    """Common words that are one token each when a blank stands before them."""
    words = tuple(word for word in _WORDS.split() if tokenizer.encode(f" {word}").size == 1)
    if len(words) < 2:
        raise ValueError("the tokenizer has no common English word among its tokens")
    return words


def text_of_tokens(words: Sequence[str], count: int, start: int = 0) -> str:
    """A text of `count` tokens; another `start` gives another text."""
    chosen = itertools.islice(itertools.cycle(words), start, start + count)
    return "".join(f" {word}" for word in chosen)


class EchoEngine:
    """One engine; `application` is what a server runs."""

    def __init__(self, tokenizer: DemoTokenizer, latency_s: float = 0.0) -> None:
        self._tokenizer = tokenizer
        self._words = plain_words(tokenizer)
        self._latency_s = latency_s
        self._numbers = itertools.count(1)
        self._reply = lru_cache(256)(self._built)

    def application(self) -> web.Application:
        """A new aiohttp application of this engine."""
        app = web.Application(client_max_size=2**28)
        app.router.add_post("/v1/chat/completions", self._generate)
        app.router.add_get("/health", _alive)
        app.router.add_post("/latency", self._set_latency)
        return app

    async def _generate(self, request: web.Request) -> web.Response:
        body = await request.read()
        if self._latency_s:
            await asyncio.sleep(self._latency_s)
        wanted = _WANTED.search(body)
        number = next(self._numbers)
        before, after = self._reply(int(wanted[1]) if wanted else _DEFAULT_TOKENS, number % _KINDS)
        return json_response(b'{"id":"chatcmpl-%d",%b%d%b' % (number, before, _prompt_tokens(body), after))

    def _built(self, tokens: int, kind: int) -> tuple[bytes, bytes]:
        """The reply before and behind its count of prompt tokens."""
        text = text_of_tokens(self._words, tokens - 1, kind)
        ids = [*self._tokenizer.encode(text).tolist(), min(self._tokenizer.end_ids, default=0)]
        logprobs = sampler.sample_logprobs(len(ids), random.Random(kind))
        pairs = [[logprob, number, None] for logprob, number in zip(logprobs, ids, strict=True)]
        meta = {"output_token_logprobs": pairs, "completion_tokens": len(ids), "weight_version": "1"}
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text, "reasoning_content": None, "tool_calls": None},
            "logprobs": None,
            "finish_reason": "stop",
            "meta_info": meta,
        }
        whole = {"object": "chat.completion", "created": 1, "model": "demo", "choices": [choice]}
        text_before = json.dumps(whole, separators=(",", ":"))[1:-4]
        return f'{text_before},"prompt_tokens":'.encode(), b"}}]}"

    async def _set_latency(self, request: web.Request) -> web.Response:
        self._latency_s = float(await request.text()) / 1000
        return web.Response()


def _prompt_tokens(body: bytes) -> int:
    start = body.rfind(_IDS) + len(_IDS)
    return body.count(b",", start, body.find(b"]", start)) + 1


async def _alive(_request: web.Request) -> web.Response:
    return web.Response()
