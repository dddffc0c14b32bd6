"""Just enough of the safetensors format for sample payloads: named little-endian arrays behind a JSON header.

Tensors lie in the order in which the format's own library writes them (wide types first, then by name), so
that equal samples are equal bytes whoever encodes them.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from sessions_app.errors import SamplesFailed

Array = npt.NDArray[Any]

_CODES = {"uint8": "U8", "int32": "I32", "float64": "F64", "int64": "I64"}
_RANKS = {"U8": 0, "I32": 1, "F64": 2, "I64": 3}
_DTYPES = {code: np.dtype(name).newbyteorder("<") for name, code in _CODES.items()}
_LENGTH_BYTES = 8
_ALIGNMENT = 8


def write(arrays: Mapping[str, Array]) -> bytes:
    """The blob. Arrays must have one of the dtypes that samples use."""
    header: dict[str, Any] = {}
    parts: list[memoryview | bytes] = []
    offset = 0
    for name in sorted(arrays, key=lambda name: (-_RANKS[_code(arrays[name])], name)):
        array = np.ascontiguousarray(arrays[name], dtype=_DTYPES[_code(arrays[name])])
        span = [offset, offset + array.nbytes]
        header[name] = {"dtype": _code(array), "shape": list(array.shape), "data_offsets": span}
        parts.append(array.tobytes())
        offset = span[1]
    text = orjson.dumps(header)
    text += b" " * (-len(text) % _ALIGNMENT)
    return b"".join([len(text).to_bytes(_LENGTH_BYTES, "little"), text, *parts])


def _code(array: Array) -> str:
    return _CODES[array.dtype.name]


def read(blob: bytes) -> dict[str, Array]:
    """The arrays of a blob, as read-only views on it. Raises SamplesFailed for what is no such blob."""
    length = int.from_bytes(blob[:_LENGTH_BYTES], "little")
    body = blob[_LENGTH_BYTES + length :]
    try:
        header = orjson.loads(blob[_LENGTH_BYTES : _LENGTH_BYTES + length])
        arrays = {name: _array(entry, body) for name, entry in header.items() if name != "__metadata__"}
    except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise SamplesFailed(f"not a safetensors payload: {error}") from None
    if sum(array.nbytes for array in arrays.values()) != len(body):
        raise SamplesFailed("not a safetensors payload: the data does not fill the announced tensors")
    return arrays


def _array(entry: Mapping[str, Any], body: bytes) -> Array:
    start, end = entry["data_offsets"]
    if not 0 <= start <= end <= len(body):
        raise ValueError(f"offsets {start}, {end} lie outside the data")
    return np.frombuffer(body[start:end], dtype=_DTYPES[entry["dtype"]]).reshape(entry["shape"])
