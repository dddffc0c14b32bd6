"""From the sampling fields of an OpenAI chat body to an engine's own names.

Invariant: a field that an engine does not know is dropped with one warning per process, never silently; a
field that is no sampling (messages, tools, labels) is none of its business.
"""

import logging
from collections.abc import Mapping
from typing import Any

logger = logging.getLogger(__name__)

DEFAULT_MAX_TOKENS = 4096
LIMITS = ("max_completion_tokens", "max_tokens", "max_output_tokens")
"""Names of the token limit; the first one present counts."""
_NOT_SAMPLING = frozenset({
    *LIMITS,
    "messages", "model", "tools", "tool_choice", "parallel_tool_calls", "functions", "function_call",
    "stream", "stream_options", "n", "user", "metadata", "store", "service_tier", "safety_identifier",
    "prompt_cache_key", "chat_template_kwargs", "input_ids", "lora_path", "reasoning_effort", "verbosity",
    "logprobs", "top_logprobs", "return_meta_info", "return_routed_experts", "return_indexer_topk",
    "routed_experts_start_len", "return_token_ids", "return_raw_logprobs",
    "cache_salt", "priority", "no_stop_trim",
    "skip_special_tokens", "spaces_between_special_tokens",
})  # fmt: skip


class SamplingNames:
    """What one engine calls things. `names` maps OpenAI (or widespread) names to the engine's."""

    def __init__(self, engine: str, max_tokens: str, names: Mapping[str, str]) -> None:
        self._engine = engine
        self._max_tokens = max_tokens
        self._names = names
        self._warned: set[str] = set()

    def translate(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The limit first, then what the body sets, in the engine's order; nulls count as not set."""
        given = {key: value for key, value in body.items() if value is not None}
        self._warn(given.keys() - self._names.keys() - _NOT_SAMPLING - self._warned)
        known = {theirs: given[ours] for ours, theirs in self._names.items() if ours in given}
        return {self._max_tokens: _max_tokens(given), **known}

    def _warn(self, unknown: set[str]) -> None:
        for name in sorted(unknown):
            logger.warning("%s knows no field %r: it is dropped from every request", self._engine, name)
        self._warned |= unknown


def _max_tokens(given: Mapping[str, Any]) -> Any:
    return next((given[name] for name in LIMITS if name in given), DEFAULT_MAX_TOKENS)


COMMON = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "stop": "stop",
    "min_p": "min_p",
    "stop_token_ids": "stop_token_ids",
    "repetition_penalty": "repetition_penalty",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "ignore_eos": "ignore_eos",
    "logit_bias": "logit_bias",
}
"""Spelled alike by all engines here."""
