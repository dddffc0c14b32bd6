"""Safetensors: the reference codec for the shape `miles`, and the same layout for the others.

Per-token columns are tensors `{column}.{row}`; the rest is the JSON block `_samples_meta`. The format wants
all offsets first, so tensors are spooled to disk by type and joined at the end: memory holds one row and the
header.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np
import orjson

from sessions_app.json_text import dumps
from trainer_export.samples.codec.fields import META
from trainer_export.shapes.base import Layout, Row
from trainer_export.shapes.columns import ARRAYS, Column, Kind
from trainer_export.writers.base import writer

_CODES = {"int64": "I64", "float64": "F64", "float32": "F32", "int32": "I32", "uint8": "U8"}
"""In the order of the file: wide types first, so that all are aligned."""
_LENGTH_BYTES = 8
_ALIGNMENT = 8


@writer("safetensors")
class SafetensorsWriter:
    """One spool per type of tensor, all beside the file."""

    def __init__(self, path: Path, shape: Layout) -> None:
        self._path = path
        self._tensors = [column for column in shape.columns if _is_tensor(column)]
        self._plain = [column for column in shape.columns if not _is_tensor(column)]
        self._spools: dict[str, IO[bytes]] = {
            name: TemporaryFile(dir=path.parent)  # noqa: SIM115  (held until close)
            for name in _CODES
        }
        self._meta: IO[bytes] = TemporaryFile(dir=path.parent)  # noqa: SIM115
        self._meta.write(b'{"samples":[')
        self._entries: list[tuple[str, str, list[int], int, int]] = []
        self._rows = 0

    def write(self, row: Row) -> None:
        """Spool the row's tensors and its JSON entry."""
        for column in self._tensors:
            if row[column.name] is not None:
                self._spool(f"{column.name}.{self._rows}", column, row[column.name])
        entry = {column.name: row[column.name] for column in self._plain}
        entry["nulls"] = [column.name for column in self._tensors if row[column.name] is None]
        self._meta.write((b"," if self._rows else b"") + dumps(entry))
        self._rows += 1

    def _spool(self, name: str, column: Column, value: Any) -> None:
        dtype = ARRAYS.get(column.kind, "int32")
        array = np.ascontiguousarray(value, dtype=np.dtype(dtype).newbyteorder("<"))
        spool = self._spools[dtype]
        start = spool.tell()
        spool.write(array.tobytes())
        self._entries.append((name, dtype, list(array.shape), start, spool.tell()))

    def close(self) -> None:
        """Join header and spools."""
        self._meta.write(b'],"session_metadata":{},"empty_reason":null}')
        bytes_spool = self._spools["uint8"]
        start, size = bytes_spool.tell(), self._meta.tell()
        self._entries.append((META, "uint8", [size], start, start + size))
        header = orjson.dumps(dict(self._header()))
        header += b" " * (-len(header) % _ALIGNMENT)
        with self._path.open("wb") as file:
            file.write(len(header).to_bytes(_LENGTH_BYTES, "little") + header)
            for spool in (*self._spools.values(), self._meta):
                spool.seek(0)
                shutil.copyfileobj(spool, file, 1 << 20)
        self.abandon()

    def _header(self) -> Iterator[tuple[str, Any]]:
        bases, base = {}, 0
        for dtype, spool in self._spools.items():
            bases[dtype], base = base, base + spool.tell()
        for name, dtype, shape, start, end in self._entries:
            offsets = [bases[dtype] + start, bases[dtype] + end]
            yield name, {"dtype": _CODES[dtype], "shape": shape, "data_offsets": offsets}

    def abandon(self) -> None:
        """Drop the spools."""
        for spool in (*self._spools.values(), self._meta):
            spool.close()


def _is_tensor(column: Column) -> bool:
    return column.kind in ARRAYS or column.kind is Kind.ROWS
