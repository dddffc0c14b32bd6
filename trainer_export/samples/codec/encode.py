"""Samples to the wire: JSON for what is said about them, tensors for what is said per token."""

import numpy as np

from sessions_app.errors import InvalidJson, SamplesFailed
from sessions_app.json_text import dumps
from trainer_export.samples.codec.fields import META
from trainer_export.samples.codec.safetensors import Array, write
from trainer_export.samples.codec.tensors import tensors_of
from trainer_export.samples.payload import SamplesPayload
from trainer_export.samples.sample import Sample
from trainer_export.samples.values import JsonObject


def encode_samples(payload: SamplesPayload) -> bytes:
    """The safetensors blob. Raises SamplesFailed for values that do not fit their tensor."""
    tensors: dict[str, Array] = {}
    entries = []
    for index, sample in enumerate(payload.samples):
        arrays = tensors_of(sample)
        tensors |= {f"{name}.{index}": array for name, array in arrays.items() if array is not None}
        nulls = [name for name, array in arrays.items() if array is None]
        entries.append(_entry(sample, payload.with_reward) | {"nulls": nulls})
    tensors[META] = np.frombuffer(_meta(payload, entries), dtype=np.uint8)
    return write(tensors)


def encode_json(payload: SamplesPayload) -> bytes:
    """The same as one JSON document: the tensors are lists inside their sample."""
    entries = []
    for sample in payload.samples:
        arrays = tensors_of(sample)
        entries.append(_entry(sample, payload.with_reward) | arrays)
    return _meta(payload, entries)


def _meta(payload: SamplesPayload, entries: list[JsonObject]) -> bytes:
    meta = {
        "samples": entries,
        "session_metadata": payload.session_metadata,
        "empty_reason": payload.empty_reason,
    }
    try:
        return dumps(meta)
    except (AttributeError, InvalidJson, TypeError, ValueError, RecursionError) as error:
        raise SamplesFailed(f"samples cannot be written as JSON: {error}") from None


def _entry(sample: Sample, with_reward: bool) -> JsonObject:
    entry: JsonObject = {
        "response": sample.response,
        "response_length": sample.response_length,
        "status": str(sample.status),
        "weight_versions": sample.weight_versions,
        "prefix_cache_info": {
            "cached_tokens": sample.prefix_cache_info.cached_tokens,
            "total_prompt_tokens": sample.prefix_cache_info.total_prompt_tokens,
        },
        "metadata": sample.metadata,
    }
    return entry | {"reward": sample.reward} if with_reward else entry
