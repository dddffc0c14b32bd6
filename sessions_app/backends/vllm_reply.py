"""What the replies of vLLM's endpoints have in common."""

from collections.abc import Mapping
from typing import Any

from sessions_app import errors
from sessions_app.backends import reply as replies
from sessions_app.backends import validation
from sessions_app.backends.base import Logprobs
from sessions_app.rendering.protocol import Ids


def token_ids(choice: Mapping[str, Any], vocab_size: int) -> Ids:
    """`choices[0].token_ids`."""
    if choice.get("token_ids") is None:
        raise errors.UpstreamMissingTokenIds("invalid engine reply: choices[0].token_ids is missing")
    return validation.ids(choice["token_ids"], "choices[0].token_ids", vocab_size)


def logprob_block(choice: Mapping[str, Any], key: str) -> list[Any]:
    """The list of `choices[0].logprobs`; a missing one is an error, never 0.0."""
    block = choice.get("logprobs")
    if not isinstance(block, dict) or block.get(key) is None:
        raise errors.UpstreamMissingTokenIds(f"invalid engine reply: choices[0].logprobs.{key} is missing")
    return validation.json_list(block[key], f"choices[0].logprobs.{key}")


def chosen_logprobs(choice: Mapping[str, Any]) -> Logprobs:
    """Logprobs of the sampled ids from `logprobs.content[]`."""
    content = logprob_block(choice, "content")
    if not set(map(type, content)) <= {dict}:
        raise errors.UpstreamInvalidReply(
            "invalid engine reply: choices[0].logprobs.content must hold objects"
        )
    return validation.logprobs([entry.get("logprob") for entry in content], "choices[0].logprobs.content")


def common_fields(parsed: dict[str, Any], choice: dict[str, Any], ids: Ids, fed: int) -> dict[str, Any]:
    """The fields of a Generation that every vLLM reply fills alike. `fed`: how long the prompt was."""
    usage = replies.usage(parsed)
    if usage.get("completion_tokens") is not None:
        name = "usage.completion_tokens"
        counted = validation.count(usage["completion_tokens"], name)
        validation.same_length(ids.size, "token ids", counted, name)
    raw_reason = replies.finish(choice, "choices[0].finish_reason")
    details = usage.get("prompt_tokens_details")
    return {
        "finish_reason": validation.finish_reason(raw_reason),
        "raw_finish_reason": raw_reason,
        "weight_version": replies.weight_version(parsed),
        "prompt_tokens": validation.prompt_tokens(usage.get("prompt_tokens"), "usage.prompt_tokens", fed),
        "completion_tokens": int(ids.size),
        "cached_tokens": replies.optional_count(details, "cached_tokens") if isinstance(details, dict) else 0,
        "engine_seconds": None,
        "extras": {"matched_stop": choice["stop_reason"]} if choice.get("stop_reason") is not None else {},
    }
