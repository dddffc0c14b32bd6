"""Files of exports back as rows, for checks and tests. Reads one file into memory."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from sessions_app.json_text import loads
from trainer_export.samples.codec.fields import META
from trainer_export.samples.values import JsonObject
from trainer_export.shapes.base import Layout, Row
from trainer_export.shapes.columns import ARRAYS, Column, Kind


def read_rows(format: str, path: Path, shape: Layout) -> list[Row]:
    """The rows of a file. Raises ValueError for a file of another shape."""
    match format:
        case "parquet":
            return list(_parquet(path, shape))
        case "jsonl":
            return [_from_json(shape, loads(line)) for line in path.read_bytes().splitlines()]
        case _:
            return list(_safetensors(path, shape))


def _parquet(path: Path, shape: Layout) -> Iterator[Row]:
    table = pq.read_table(path)
    written = (table.schema.metadata or {}).get(b"tito.schema", b"").decode()
    if written != shape.schema:
        raise ValueError(f"{path.name} holds {written or 'no schema of ours'}, not {shape.schema}")
    columns = {column.name: table.column(column.name) for column in shape.columns}
    for index in range(table.num_rows):
        yield {
            column.name: _from_arrow(column, columns[column.name][index].as_py()) for column in shape.columns
        }


def _from_arrow(column: Column, value: Any) -> Any:
    if value is None:
        return None
    if column.kind in ARRAYS:
        return np.asarray(value, ARRAYS[column.kind])
    match column.kind:
        case Kind.JSON:
            return loads(value.encode())
        case Kind.ROWS:
            return np.frombuffer(value["data"], "<i4").reshape(value["shape"])
        case Kind.RECORDS:
            return [
                {field.name: _from_arrow(field, one[field.name]) for field in column.fields} for one in value
            ]
        case _:
            return value


def _from_json(shape: Layout, entry: JsonObject) -> Row:
    entry.pop("schema", None)
    kinds = {column.name: column.kind for column in shape.columns}
    return {name: _from_json_value(kinds[name], value) for name, value in entry.items()}


def _from_json_value(kind: Kind, value: Any) -> Any:
    if value is None:
        return None
    if kind in ARRAYS:
        return np.asarray(value, ARRAYS[kind])
    if kind is Kind.ROWS:
        return np.frombuffer(base64.b64decode(value["base64"]), "<i4").reshape(value["shape"])
    return value


def _safetensors(path: Path, shape: Layout) -> Iterator[Row]:
    from safetensors.numpy import load_file

    tensors = load_file(path)
    entries = loads(tensors[META].tobytes())["samples"]
    names = [column.name for column in shape.columns if column.kind in ARRAYS or column.kind is Kind.ROWS]
    for index, entry in enumerate(entries):
        entry.pop("nulls")
        yield entry | {name: tensors.get(f"{name}.{index}") for name in names}
