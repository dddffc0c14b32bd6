"""Samples from the wire. What is not exactly the format is refused; unknown JSON keys are ignored."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sessions_app.errors import InvalidJson, SamplesFailed
from sessions_app.json_text import loads
from trainer_export.samples.codec.fields import META, TENSOR_FIELDS, TensorField
from trainer_export.samples.codec.safetensors import Array, read
from trainer_export.samples.values import JsonObject

_FIELDS = ("response", "response_length", "status", "weight_versions", "prefix_cache_info", "metadata")


@dataclass(frozen=True, slots=True)
class DecodedSamples:
    """A payload as a trainer uses it."""

    samples: list[JsonObject]
    """The JSON fields of each sample by name, `reward` where the payload carries it, and its arrays (or
    None)."""
    session_metadata: JsonObject
    empty_reason: str | None


def decode_samples(blob: bytes) -> DecodedSamples:
    """The samples of a payload. Raises SamplesFailed for everything that the format does not promise."""
    tensors = read(blob)
    meta = _meta(tensors.pop(META, None))
    samples = [_sample(entry, index, tensors) for index, entry in enumerate(_list(meta, "samples"))]
    if tensors:
        raise SamplesFailed(f"payload carries unreferenced tensors: {sorted(tensors)}")
    return DecodedSamples(samples, _object(meta, "session_metadata"), meta.get("empty_reason"))


def _meta(tensor: Array | None) -> JsonObject:
    if tensor is None:
        raise SamplesFailed(f"payload has no {META} tensor")
    if tensor.dtype != np.uint8 or tensor.ndim != 1:
        raise SamplesFailed(f"{META} must be a rank-one uint8 tensor, got {tensor.dtype} {tensor.shape}")
    try:
        meta = loads(tensor.tobytes())
    except InvalidJson as error:
        raise SamplesFailed(f"{META}: {error}") from None
    if not isinstance(meta, dict):
        raise SamplesFailed(f"{META} must be a JSON object, got {type(meta).__name__}")
    return meta


def _list(holder: JsonObject, key: str) -> list[Any]:
    value = holder.get(key)
    if not isinstance(value, list):
        raise SamplesFailed(f"{key} must be a JSON list, got {type(value).__name__}")
    return value


def _object(holder: JsonObject, key: str) -> JsonObject:
    value = holder.get(key)
    if not isinstance(value, dict):
        raise SamplesFailed(f"{key} must be a JSON object, got {type(value).__name__}")
    return value


def _sample(entry: Any, index: int, tensors: dict[str, Array]) -> JsonObject:
    if not isinstance(entry, dict):
        raise SamplesFailed(f"sample {index} must be a JSON object, got {type(entry).__name__}")
    missing = [name for name in _FIELDS if name not in entry]
    if missing:
        raise SamplesFailed(f"sample {index} has no {', '.join(missing)}")
    _object(entry, "metadata")
    nulls = _null_fields(entry)
    sample = {name: entry[name] for name in (*_FIELDS, "reward") if name in entry}
    for field in TENSOR_FIELDS:
        sample[field.name] = None if field.name in nulls else _tensor(field, index, tensors)
    return sample


def _null_fields(entry: JsonObject) -> frozenset[str]:
    nulls = _list(entry, "nulls")
    foreign = [name for name in nulls if name not in {field.name for field in TENSOR_FIELDS}]
    if foreign:
        raise SamplesFailed(f"null markers reference non-tensor fields: {foreign}")
    return frozenset(nulls)


def _tensor(field: TensorField, index: int, tensors: dict[str, Array]) -> Array:
    name = f"{field.name}.{index}"
    if name not in tensors:
        raise SamplesFailed(f"payload has no tensor {name}")
    array = tensors.pop(name)
    if array.dtype != field.dtype or array.ndim != field.rank:
        raise SamplesFailed(f"tensor {name} must be {np.dtype(field.dtype).name} of rank {field.rank}")
    return array
