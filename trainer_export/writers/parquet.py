"""Parquet: list columns for what is counted per token, zstd, name and version of the shape in the metadata.

Row groups are cut by tokens, so memory is bounded by one row group and the largest row.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sessions_app.json_text import dumps
from trainer_export.shapes.base import Layout, Row
from trainer_export.shapes.columns import ARRAYS, Column, Kind
from trainer_export.writers.base import writer
from trainer_export.writers.values import storable

_GROUP_VALUES = 4_000_000
"""Array values after which a row group is written."""
_GROUP_ROWS = 4096
_LEVEL = 3

_SCALARS = {
    Kind.TEXT: pa.string(),
    Kind.INTEGER: pa.int64(),
    Kind.NUMBER: pa.float64(),
    Kind.FLAG: pa.bool_(),
    Kind.TEXTS: pa.list_(pa.string()),
    Kind.JSON: pa.string(),
    Kind.ROWS: pa.struct([("shape", pa.list_(pa.int32())), ("data", pa.binary())]),
}


def schema_of(shape: Layout) -> pa.Schema:
    """The Arrow schema of a shape."""
    fields = [_field(column) for column in shape.columns]
    return pa.schema(fields, metadata={"tito.shape": shape.name, "tito.schema": shape.schema})


def _field(column: Column) -> pa.Field:
    return pa.field(column.name, _type(column), nullable=column.optional)


def _type(column: Column) -> pa.DataType:
    if column.kind in ARRAYS:
        return pa.list_(pa.from_numpy_dtype(ARRAYS[column.kind]))
    if column.kind is Kind.RECORDS:
        return pa.list_(pa.struct([_field(field) for field in column.fields]))
    return _SCALARS[column.kind]


@writer("parquet")
class ParquetWriter:
    """Collects one row group at a time."""

    def __init__(self, path: Path, shape: Layout) -> None:
        self._columns = shape.columns
        self._schema = schema_of(shape)
        self._arrays = [column.name for column in shape.columns if column.kind in ARRAYS]
        self._replay = [column.name for column in shape.columns if column.kind is Kind.ROWS]
        texts = [column.name for column in shape.columns if column.kind is Kind.TEXT]
        self._writer = pq.ParquetWriter(
            path, self._schema, compression="zstd", compression_level=_LEVEL, use_dictionary=texts
        )
        self._rows: list[Row] = []
        self._values = 0

    def write(self, row: Row) -> None:
        """Add a row; a full group is written."""
        self._rows.append(row)
        self._values += sum(len(row[name]) for name in self._arrays if row[name] is not None)
        self._values += sum(np.size(row[name]) for name in self._replay if row[name] is not None)
        if self._values >= _GROUP_VALUES or len(self._rows) >= _GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            arrays = [_array(column, [row[column.name] for row in self._rows]) for column in self._columns]
            self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        self._rows, self._values = [], 0

    def close(self) -> None:
        """Write what is left, and the footer."""
        self._flush()
        self._writer.close()

    def abandon(self) -> None:
        """Close without a promise."""
        self._rows = []
        try:
            self._writer.close()
        except OSError:
            pass


def _array(column: Column, values: Sequence[Any]) -> pa.Array:
    if column.kind in ARRAYS:
        return _lists(values, ARRAYS[column.kind])
    return pa.array([_value(column, value) for value in values], type=_type(column))


def _lists(values: Sequence[Any], dtype: str) -> pa.Array:
    """Arrays as one list column, without a Python object per token."""
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum([0 if value is None else len(value) for value in values], out=offsets[1:])
    flat = np.concatenate([np.asarray(() if value is None else value, dtype) for value in values])
    nulls = np.array([value is None for value in values])
    mask = pa.array(nulls) if nulls.any() else None
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat), mask=mask)


def _value(column: Column, value: Any) -> Any:
    if value is None:
        return None
    match column.kind:
        case Kind.JSON:
            return dumps(value).decode()
        case Kind.TEXT:
            return storable(value)
        case Kind.TEXTS:
            return [storable(one) for one in value]
        case Kind.ROWS:
            data = np.ascontiguousarray(value, dtype="<i4")
            return {"shape": list(data.shape), "data": data.tobytes()}
        case Kind.RECORDS:
            return [_record(column, one) for one in value]
        case _:
            return value


def _record(column: Column, record: Any) -> dict[str, Any]:
    return {field.name: _value(field, record[field.name]) for field in column.fields}
