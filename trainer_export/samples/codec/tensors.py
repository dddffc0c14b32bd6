"""The per-token fields of a sample as wire arrays. What a hook set to something that does not fit is
refused."""

from typing import Any

import numpy as np

from sessions_app.errors import SamplesFailed
from trainer_export.samples.codec.fields import TENSOR_FIELDS, TensorField
from trainer_export.samples.codec.safetensors import Array
from trainer_export.samples.sample import Sample


def tensors_of(sample: Sample) -> dict[str, Array | None]:
    """Every tensor field by name; None for a null one. Raises SamplesFailed."""
    return {field.name: _array(field, sample) for field in TENSOR_FIELDS}


def _array(field: TensorField, sample: Sample) -> Array | None:
    value = getattr(sample, field.name)
    if value is None:
        return None
    return _converted(field, value) if field.converts else _as_it_is(field, value)


def _converted(field: TensorField, value: Any) -> Array:
    try:
        given: Array = np.asarray(value)
        if given.ndim == field.rank and (given.dtype.kind in "biuf" or not given.size):
            with np.errstate(all="ignore"):
                array = given.astype(field.dtype)
            if np.array_equal(given, array, equal_nan=given.dtype.kind == "f"):
                return array
    except (OverflowError, TypeError, ValueError):
        pass
    raise SamplesFailed(f"{field.name} values do not fit wire dtype {np.dtype(field.dtype).name}")


def _as_it_is(field: TensorField, value: Any) -> Array:
    array: Array = np.asarray(value)
    if array.dtype != field.dtype:
        raise SamplesFailed(f"{field.name} must have dtype {np.dtype(field.dtype).name}, got {array.dtype}")
    if array.ndim != field.rank:
        raise SamplesFailed(f"{field.name} must have {field.rank} dimensions, got {array.ndim}")
    return array
