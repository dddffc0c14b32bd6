"""What an engine's 200 must hold before anything of it is stored. The one place for these checks.

Invariant: ids and logprobs that leave here are as many as the engine counted, the ids lie in the vocabulary,
the logprobs are finite numbers, and the engine was fed what it was sent. Errors name the field; none holds
text of the conversation. Lists become numpy arrays by one comprehension each: no object per token outlives
the call.
"""

from typing import Any

import numpy as np

from sessions_app import errors
from sessions_app.backends.base import Logprobs
from sessions_app.rendering.protocol import Ids

NO_TOKEN_IDS = "meta_info and output_token_logprobs must be in choice (requires logprobs=True)"
NULL_CONTENT = (
    "assistant message content is None, when tool call parser failed SGLang should still return an empty"
    " content rather than None. Please check your modified SGLang version."
)
_BRANCH_HINT = (
    "Please check whether you use the correct SGLang branch which has fix the tokenizer batch decode issue."
)
_FINISH_REASONS = frozenset({"stop", "tool_calls", "length", "abort", "content_filter", "error"})


def json_object(value: object, name: str) -> dict[str, Any]:
    """`value` as an object."""
    if not isinstance(value, dict):
        raise errors.UpstreamInvalidReply(
            f"invalid engine reply: {name} must be an object, got {_kind(value)}"
        )
    return value


def json_list(value: object, name: str) -> list[Any]:
    """`value` as a list."""
    if not isinstance(value, list):
        raise errors.UpstreamInvalidReply(f"invalid engine reply: {name} must be a list, got {_kind(value)}")
    return value


def required(holder: dict[str, Any], key: str, name: str) -> Any:
    """The value of a key that must be there (null counts as there)."""
    if key not in holder:
        raise errors.UpstreamInvalidReply(f"invalid engine reply: {name} is missing")
    return holder[key]


def count(value: object, name: str) -> int:
    """`value` as a count of tokens."""
    if type(value) is not int or value < 0:
        raise errors.UpstreamInvalidReply(f"invalid engine reply: {name} must be a count, got {_kind(value)}")
    return value


def optional_text(value: object, name: str) -> str | None:
    """`value` as text or null."""
    if value is not None and not isinstance(value, str):
        raise errors.UpstreamInvalidReply(f"invalid engine reply: {name} must be text, got {_kind(value)}")
    return value


def finish_reason(raw: str | None) -> str:
    """The normalised reason: "" for null, `error` for a word that is none of the known ones, so that only
    `length` closes a path and only `stop` and `tool_calls` complete a turn.
    """
    return "" if raw is None else raw if raw in _FINISH_REASONS else "error"


def ids(values: object, name: str, vocab_size: int) -> Ids:
    """Token ids within the vocabulary."""
    listed = json_list(values, name)
    if not set(map(type, listed)) <= {int}:
        raise errors.UpstreamInvalidReply(f"invalid engine reply: {name} must hold integers only")
    if listed and (min(listed) < 0 or max(listed) >= vocab_size):
        raise errors.EngineTokenMismatch(
            f"engine token mismatch: {name} holds an id outside the vocabulary of {vocab_size}"
        )
    return np.asarray(listed, dtype=np.int32)


def logprobs(values: object, name: str) -> Logprobs:
    """Finite log probabilities, one per sampled id."""
    listed = json_list(values, name)
    if set(map(type, listed)) <= {float, int}:
        try:
            array = np.asarray(listed, dtype=np.float64)
        except OverflowError:
            array = np.asarray([np.inf])
        if np.isfinite(array).all():
            return array
    raise errors.UpstreamInvalidLogprob(
        f"invalid engine reply: {name} holds a logprob that is no finite number"
    )


def sampled_pairs(entries: object, name: str, vocab_size: int) -> tuple[Ids, Logprobs]:
    """Ids and logprobs of a list of `[logprob, id, …]`."""
    if entries is None:
        raise errors.UpstreamMissingTokenIds(f"invalid engine reply: {name} is null")
    listed = json_list(entries, name)
    if not (set(map(type, listed)) <= {list} and all(map(_is_pair, listed))):
        raise errors.UpstreamInvalidReply(f"invalid engine reply: {name} must hold lists of [logprob, id]")
    return ids([entry[1] for entry in listed], name, vocab_size), logprobs(
        [entry[0] for entry in listed], name
    )


def counted(length: int, name: str, completion_tokens: object) -> None:
    """As many ids as the engine counted; the reference's text, whatever stands in the place of the count."""
    if length != completion_tokens:
        raise errors.UpstreamTokenCountMismatch(
            f"invalid chat completion response: len({name})={length} !="
            f" completion_tokens={completion_tokens}. {_BRANCH_HINT}"
        )


def same_length(length: int, name: str, other: int, other_name: str) -> None:
    """Two lists of one reply are parallel."""
    if length != other:
        raise errors.UpstreamTokenCountMismatch(
            f"invalid engine reply: {name} has {length} entries but {other_name} {other}"
        )


def prompt_tokens(reported: object, name: str, sent: int) -> int | None:
    """The engine's own count of the prompt, where it reports one, equals what it was sent."""
    if reported is None:
        return None
    reported_count = count(reported, name)
    if reported_count != sent:
        raise errors.EngineTokenMismatch(
            f"engine token mismatch: {name}={reported_count} but {sent} prompt tokens were sent"
        )
    return reported_count


def same_ids(values: object, name: str, expected: Ids) -> None:
    """A second source of the sampled ids agrees with the first."""
    if not isinstance(values, list) or len(values) != expected.size or values != expected.tolist():
        raise errors.UpstreamTokenCountMismatch(
            f"invalid engine reply: {name} disagrees with the ids beside the logprobs"
        )


def same_prompt(values: object, name: str, sent: Ids) -> None:
    """The prompt an engine echoes is the one it was sent."""
    if not isinstance(values, list) or len(values) != sent.size or values != sent.tolist():
        raise errors.EngineTokenMismatch(f"engine token mismatch: {name} is not the prompt that was sent")


def _is_pair(entry: list[Any]) -> bool:
    return len(entry) > 1


def _kind(value: object) -> str:
    return "null" if value is None else type(value).__name__
