"""Token ids and logprobs as packed little-endian bytes. The only place that knows the byte layout.

ids: int32 `<i4`. logprobs: float32 `<f4` where every value survives it, else float64 `<f8`; the width is
stored beside the bytes, so that what is read is what was sampled.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int32]
Logprobs = npt.NDArray[np.float64]

EMPTY_IDS: Ids = np.empty(0, dtype=np.int32)
EMPTY_IDS.setflags(write=False)


@dataclass(frozen=True, slots=True)
class PackedLogprobs:
    """Logprobs as stored."""

    data: bytes
    width: int
    """Bytes a value: 4 or 8."""


def pack_ids(ids: Ids) -> bytes:
    """int32 ids, shape (n,), to 4·n bytes."""
    return ids.astype("<i4", copy=False).tobytes()


def unpack_ids(data: bytes | memoryview) -> Ids:
    """4·n bytes to read-only int32 ids, shape (n,), without a copy. Raises ValueError on a partial id."""
    return np.frombuffer(data, dtype="<i4")


def pack_logprobs(values: Logprobs) -> PackedLogprobs:
    """float64 values, shape (n,), in the narrowest width that keeps every one of them."""
    narrow = values.astype("<f4")
    if np.array_equal(narrow.astype(np.float64), values):
        return PackedLogprobs(narrow.tobytes(), 4)
    return PackedLogprobs(values.astype("<f8", copy=False).tobytes(), 8)


def unpack_logprobs(data: bytes | memoryview, width: int) -> Logprobs:
    """The values as read-only float64, shape (n,)."""
    values = np.frombuffer(data, dtype="<f4" if width == 4 else "<f8").astype(np.float64)
    values.setflags(write=False)
    return values
