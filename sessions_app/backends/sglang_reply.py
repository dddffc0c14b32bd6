"""What the replies of SGLang's endpoints have in common: their `meta_info`."""

from typing import Any

from sessions_app import errors
from sessions_app.backends import reply as replies
from sessions_app.backends import validation
from sessions_app.backends.base import Logprobs
from sessions_app.rendering.protocol import Ids

LOGPROB_LIST = "meta_info.output_token_logprobs"


def meta_info(holder: dict[str, Any], missing: str) -> dict[str, Any]:
    """`meta_info` with a list of logprobs; `missing`: the text of the error where there is none."""
    meta = holder.get("meta_info")
    if not isinstance(meta, dict) or "output_token_logprobs" not in meta:
        raise errors.UpstreamMissingTokenIds(missing)
    return meta


def completion_tokens(meta: dict[str, Any]) -> int:
    """How many ids the engine says it sampled."""
    name = "meta_info.completion_tokens"
    return validation.count(validation.required(meta, "completion_tokens", name), name)


def sampled(meta: dict[str, Any], vocab_size: int) -> tuple[Ids, Logprobs]:
    """Ids and logprobs of the list that is the truth about what was sampled."""
    return validation.sampled_pairs(meta["output_token_logprobs"], LOGPROB_LIST, vocab_size)


def common_fields(
    meta: dict[str, Any], raw_reason: str | None, sent: int, *extensions: dict[str, Any]
) -> dict[str, Any]:
    """The fields of a Generation that both replies fill alike. `sent`: length of the prompt."""
    return {
        "finish_reason": validation.finish_reason(raw_reason),
        "raw_finish_reason": raw_reason,
        "weight_version": replies.weight_version(meta),
        "prompt_tokens": validation.prompt_tokens(meta.get("prompt_tokens"), "meta_info.prompt_tokens", sent),
        "completion_tokens": completion_tokens(meta),
        "cached_tokens": replies.optional_count(meta, "cached_tokens"),
        "engine_seconds": replies.optional_seconds(meta, "e2e_latency"),
        "extras": replies.extras(meta),
        "side": replies.take_riders(meta, *extensions),
    }
