"""What the replies of vLLM's endpoints have in common."""

import re
from collections.abc import Mapping
from typing import Any

from sessions_app import errors
from sessions_app.backends import reply as replies
from sessions_app.backends import validation
from sessions_app.backends.base import Logprobs
from sessions_app.rendering.protocol import Ids

_PREFIX = "token_id:"
_NAMED_ID = re.compile(r"token_id:[0-9]{1,18}")


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


def chosen_logprobs(choice: Mapping[str, Any], ids: Ids) -> Logprobs:
    """Logprobs of the sampled ids from `logprobs.content[]`, which may name those ids as well."""
    name = "choices[0].logprobs.content"
    content = logprob_block(choice, "content")
    if not set(map(type, content)) <= {dict}:
        raise errors.UpstreamInvalidReply(f"invalid engine reply: {name} must hold objects")
    logprobs = validation.logprobs([entry.get("logprob") for entry in content], name)
    validation.same_length(ids.size, "choices[0].token_ids", logprobs.size, name)
    named = named_ids([entry.get("token") for entry in content])
    if named is not None:
        validation.same_ids(named, name, ids)
    return logprobs


def named_ids(names: list[Any]) -> list[int] | None:
    """Ids of `token_id:N` names; None where the server names tokens otherwise."""
    return [int(name.removeprefix(_PREFIX)) for name in names] if all(map(_is_id, names)) else None


def _is_id(name: object) -> bool:
    return isinstance(name, str) and _NAMED_ID.fullmatch(name) is not None


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
