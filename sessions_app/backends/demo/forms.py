"""One completion in the JSON form of each engine protocol: the engine's side of the wire, shapes only."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Completion:
    """What was sampled. Faults change single fields, so nothing here is assumed to be consistent."""

    identity: str
    created: int
    model: str
    prompt_ids: list[int]
    ids: list[int]
    logprobs: list[float | None]
    text: str
    """Decoded completion, stop token included."""
    message: dict[str, Any] | None
    """The assistant message as this engine's parsers see it."""
    finish_reason: str | None
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    weight_version: str = "1"
    seconds: float = 0.0
    matched: int | str | None = None
    """The stop id or string that ended it; None = the last id, where it stopped at all."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    """What else stands in SGLang's `meta_info`."""


Form = Callable[[Completion], dict[str, Any]]


def sglang_chat(done: Completion) -> dict[str, Any]:
    """`POST /v1/chat/completions` of SGLang with `return_meta_info`."""
    choice = {
        "index": 0,
        "message": done.message,
        "logprobs": None,
        "finish_reason": done.finish_reason,
        "matched_stop": done.ids[-1] if done.ids and done.finish_reason != "length" else None,
        "meta_info": _meta_info(done),
    }
    return _openai("chat.completion", done, choice)


def sglang_generate(done: Completion) -> dict[str, Any]:
    """`POST /generate` of SGLang."""
    reason = "stop" if done.finish_reason == "tool_calls" else done.finish_reason
    finish = None if reason is None else {"type": reason, **_finish_detail(reason, done)}
    meta = {"id": done.identity, "finish_reason": finish, **_meta_info(done)}
    return {"text": done.text, "output_ids": done.ids, "meta_info": meta}


def vllm_generate(done: Completion) -> dict[str, Any]:
    """`POST /inference/v1/generate` of vLLM."""
    choice = {
        "index": 0,
        "token_ids": done.ids,
        "logprobs": _content_logprobs(done),
        "finish_reason": _plain_reason(done),
    }
    return {
        "request_id": done.identity,
        "choices": [choice],
        "output_mode": "token_ids",
        "usage": _usage(done),
    }


def vllm_completion(done: Completion) -> dict[str, Any]:
    """`POST /v1/completions` of vLLM with `return_token_ids`."""
    names = [f"token_id:{token_id}" for token_id in done.ids]
    choice = {
        "index": 0,
        "text": done.text,
        "logprobs": {
            "tokens": names,
            "token_logprobs": done.logprobs,
            "top_logprobs": [{name: value} for name, value in zip(names, done.logprobs, strict=False)],
            "text_offset": [0] * len(names),
        },
        "finish_reason": _plain_reason(done),
        "stop_reason": None,
        "token_ids": done.ids,
        "prompt_token_ids": done.prompt_ids,
    }
    return _openai("text_completion", done, choice)


def vllm_chat(done: Completion) -> dict[str, Any]:
    """`POST /v1/chat/completions` of vLLM with `return_token_ids`."""
    choice = {
        "index": 0,
        "message": done.message,
        "logprobs": _content_logprobs(done),
        "finish_reason": done.finish_reason,
        "stop_reason": None,
        "token_ids": done.ids,
    }
    return {**_openai("chat.completion", done, choice), "prompt_token_ids": done.prompt_ids}


def _openai(kind: str, done: Completion, choice: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": done.identity,
        "object": kind,
        "created": done.created,
        "model": done.model,
        "choices": [choice],
        "usage": _usage(done),
    }


def _usage(done: Completion) -> dict[str, Any]:
    return {
        "prompt_tokens": done.prompt_tokens,
        "completion_tokens": done.completion_tokens,
        "total_tokens": done.prompt_tokens + done.completion_tokens,
    }


def _meta_info(done: Completion) -> dict[str, Any]:
    return {
        "output_token_logprobs": [
            [p, token, None] for p, token in zip(done.logprobs, done.ids, strict=False)
        ],
        "completion_tokens": done.completion_tokens,
        "prompt_tokens": done.prompt_tokens,
        "cached_tokens": done.cached_tokens,
        "weight_version": done.weight_version,
        "e2e_latency": done.seconds,
        **done.meta,
    }


def _content_logprobs(done: Completion) -> dict[str, Any]:
    pairs = zip(done.ids, done.logprobs, strict=False)
    return {"content": [{"token": f"token_id:{i}", "logprob": p, "top_logprobs": []} for i, p in pairs]}


def _finish_detail(reason: str, done: Completion) -> dict[str, Any]:
    if reason == "length":
        return {"length": done.completion_tokens}
    if reason != "stop" or not done.ids:
        return {}
    return {"matched": done.ids[-1] if done.matched is None else done.matched}


def _plain_reason(done: Completion) -> str | None:
    return "stop" if done.finish_reason == "tool_calls" else done.finish_reason
