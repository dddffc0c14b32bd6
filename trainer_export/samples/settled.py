"""A sample as hooks left it, made fit for a native row: arrays for the per-token fields, values that can be
written. The reply of `POST …/samples` is not checked so: there a hook's word is passed on.
"""

from dataclasses import asdict

import numpy as np

from sessions_app.errors import InvalidJson, SamplesFailed
from sessions_app.json_text import dumps
from trainer_export.samples.codec.tensors import tensors_of
from trainer_export.samples.sample import Sample
from trainer_export.samples.values import Status

_LARGEST_ID = np.iinfo(np.int32).max
_COUNTED = 2**63


def settle(sample: Sample) -> None:
    """Null masks and logprobs become what they default to. Raises SamplesFailed."""
    arrays = tensors_of(sample)
    tokens, mask, logprobs = (arrays[name] for name in ("tokens", "loss_mask", "rollout_log_probs"))
    if tokens is None or not tokens.size:
        raise SamplesFailed("tokens must not be null or empty")
    if tokens.min() < 0 or tokens.max() > _LARGEST_ID:
        raise SamplesFailed("tokens must be ids from 0 to 2147483647")
    sample.tokens = tokens.astype(np.int32)
    sample.response_length = int(sample.response_length)
    sample.loss_mask = np.ones(sample.response_length, np.uint8) if mask is None else mask
    sample.rollout_log_probs = np.zeros(sample.response_length) if logprobs is None else logprobs
    _check_replay(sample)
    _check_counts(sample)
    _check_words(sample)


def _check_replay(sample: Sample) -> None:
    for name in ("rollout_routed_experts", "rollout_indexer_topk"):
        rows = getattr(sample, name)
        if rows is not None and len(rows) != len(sample.tokens) - 1:
            raise SamplesFailed(f"{name} has {len(rows)} rows for {len(sample.tokens)} tokens")


def _check_counts(sample: Sample) -> None:
    counted = asdict(sample.prefix_cache_info) | (asdict(sample.spec_info) if sample.spec_info else {})
    for name, value in counted.items():
        if type(value) is not int or not 0 <= value < _COUNTED:
            raise SamplesFailed(f"{name} must be a whole number from 0, got {value!r:.40}")


def _check_words(sample: Sample) -> None:
    if str(sample.status) not in tuple(Status):
        raise SamplesFailed(f"status must be one of {', '.join(Status)}, got {str(sample.status)[:40]!r}")
    if not isinstance(sample.response, str):
        raise SamplesFailed(f"response must be text, got {type(sample.response).__name__}")
    told = {name: value for name, value in sample.metadata.items() if name != "accumulated_token_ids"}
    try:
        dumps([told, sample.reward, list(sample.weight_versions)])
    except (AttributeError, InvalidJson, TypeError, ValueError, RecursionError) as error:
        raise SamplesFailed(f"samples cannot be written as JSON: {error}") from None
