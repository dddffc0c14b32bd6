"""The demo engine's "model": from prompt ids to a completion, through text.

Deterministic where an engine is: with a seed, or at temperature 0, equal prompts give equal ids.
"""

import base64
import hashlib
import itertools
import random
import time
import uuid
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from sessions_app.backends.demo import assistant, conversation, reply_parser, sampler
from sessions_app.backends.demo.forms import Completion
from sessions_app.backends.demo.request import Asked

R3_LAYERS = 2
_R3_EXPERTS = 2
_REMEMBERED_SESSIONS = 4096


class DemoTokenizer(sampler.Tokenizer, Protocol):
    """A tokenizer that knows where its model stops."""

    vocab_size: int
    end_ids: frozenset[int]


@dataclass(frozen=True, slots=True)
class Sampled:
    """What came out before it is dressed as a completion."""

    ids: list[int]
    text: str
    """The message's text: neither the stop token nor a stop string."""
    finish_reason: str


class DemoModel:
    """Thread-free; one per demo engine process."""

    def __init__(self, tokenizer: DemoTokenizer, weight_version: str = "1") -> None:
        self.tokenizer = tokenizer
        self.weight_version = weight_version
        self._numbers = itertools.count(1)
        self._cache: OrderedDict[str, np.ndarray[Any, Any]] = OrderedDict()

    def complete(self, asked: Asked, session: str, *, aborted: bool = False) -> Completion:
        """One completion; an aborted one is cut in half, as if the abort had come midway."""
        number = next(self._numbers)
        chance = _chance(asked, number)
        prompt = np.asarray(asked.prompt_ids, dtype=np.int32)
        talk = conversation.read(self.tokenizer.decode(prompt))
        sampled = self._sample(assistant.reply(talk, chance), asked, chance)
        if aborted:
            sampled = self._cut(sampled.ids, max(1, len(sampled.ids) // 2), "abort")
        identity = uuid.uuid4().hex[:24]
        message = reply_parser.parse(sampled.text, identity, thinking_open=talk.thinking_open)
        called = sampled.finish_reason == "stop" and message["tool_calls"]
        return Completion(
            identity=f"chatcmpl-{identity}",
            created=int(time.time()),
            model=asked.model,
            prompt_ids=asked.prompt_ids,
            ids=sampled.ids,
            logprobs=[*sampler.sample_logprobs(len(sampled.ids), chance)],
            text=self.tokenizer.decode(np.asarray(sampled.ids, dtype=np.int32)),
            message=message,
            finish_reason="tool_calls" if called else sampled.finish_reason,
            prompt_tokens=len(asked.prompt_ids),
            completion_tokens=len(sampled.ids),
            cached_tokens=self._cached(session, prompt, sampled.ids),
            weight_version=self.weight_version,
            meta=_riders(asked, len(sampled.ids), chance),
        )

    def _sample(self, text: str, asked: Asked, chance: random.Random) -> Sampled:
        """The whole text and the stop token, or less where a stop string or the limit comes first."""
        said, stopped = _until_stop(text, asked.stop)
        ids = sampler.sample_ids(said, self.tokenizer, chance)
        if not stopped:
            ids.append(min(self.tokenizer.end_ids, default=0))
        if len(ids) > asked.max_tokens:
            return self._cut(ids, asked.max_tokens, "length")
        return Sampled(ids, said.removesuffix(stopped), "stop")

    def _cut(self, ids: list[int], length: int, reason: str) -> Sampled:
        kept = ids[:length]
        return Sampled(kept, self.tokenizer.decode(np.asarray(kept, dtype=np.int32)), reason)

    def _cached(self, session: str, prompt: "np.ndarray[Any, Any]", ids: list[int]) -> int:
        """Tokens of the prompt that the session's last turn left in the prefix cache."""
        before = self._cache.get(session)
        self._cache[session] = np.concatenate([prompt, np.asarray(ids, dtype=np.int32)])
        self._cache.move_to_end(session)
        if len(self._cache) > _REMEMBERED_SESSIONS:
            self._cache.popitem(last=False)
        if before is None:
            return 0
        shared = min(before.size, prompt.size - 1)
        differing = np.flatnonzero(before[:shared] != prompt[:shared])
        return int(differing[0]) if differing.size else shared


def _chance(asked: Asked, number: int) -> random.Random:
    fixed = asked.seed is not None or asked.temperature == 0
    digest = hashlib.blake2b(np.asarray(asked.prompt_ids, dtype="<i4").tobytes(), digest_size=16)
    digest.update(f"{asked.seed} {'' if fixed else number}".encode())
    return random.Random(digest.digest())


def _until_stop(text: str, stops: tuple[str, ...]) -> tuple[str, str]:
    """The text up to and with the first stop string, and that string ("" = none occurs)."""
    found = [(text.find(stop) + len(stop), stop) for stop in stops if stop in text]
    if not found:
        return text, ""
    end, stop = min(found)
    return text[:end], stop


def _riders(asked: Asked, generated: int, chance: random.Random) -> dict[str, Any]:
    """Replay payloads: one row a token of the context, less the last, from `start_len` on."""
    rows = len(asked.prompt_ids) + generated - 1
    riders: dict[str, Any] = {}
    if asked.routed_experts:
        riders["routed_experts"] = _rows(max(0, rows - asked.start_len), chance)
    if asked.indexer_topk:
        riders |= {"indexer_topk": _rows(rows, chance), "indexer_topk_num_layers": R3_LAYERS}
    return riders


def _rows(count: int, chance: random.Random) -> str:
    experts = [chance.randrange(8) for _ in range(count * R3_LAYERS * _R3_EXPERTS)]
    return base64.b64encode(np.asarray(experts, dtype="<i4").tobytes()).decode()
