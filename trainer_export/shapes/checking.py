"""Is a row what its shape says? Run over files read back, by tests and by `export_samples --check`."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from trainer_export.shapes.base import Layout, Row
from trainer_export.shapes.columns import ARRAYS, Column, Kind

_TYPES: dict[Kind, type | tuple[type, ...]] = {
    Kind.TEXT: str,
    Kind.INTEGER: int,
    Kind.NUMBER: (int, float),
    Kind.FLAG: bool,
    Kind.TEXTS: list,
    Kind.RECORDS: list,
    Kind.ROWS: np.ndarray,
}


def problems_of(shape: Layout, row: Row) -> list[str]:
    """Everything that is wrong with a row; empty for a good one."""
    wrong = list(_columns(shape.columns, row))
    return wrong or list(shape.check(row))


def _columns(columns: Any, row: Row) -> Iterator[str]:
    names = [column.name for column in columns]
    if set(row) != set(names):
        yield f"columns differ: {sorted(set(row) ^ set(names))}"
        return
    for column in columns:
        yield from _value(column, row[column.name])


def _value(column: Column, value: Any) -> Iterator[str]:
    if value is None:
        if not column.optional:
            yield f"{column.name} is null"
    elif column.kind in ARRAYS:
        yield from _array(column, value)
    elif column.kind in _TYPES and not isinstance(value, _TYPES[column.kind]):
        yield f"{column.name} is {type(value).__name__}, not {column.kind}"
    elif column.kind is Kind.RECORDS:
        for record in value:
            yield from _columns(column.fields, record)


def _array(column: Column, value: Any) -> Iterator[str]:
    array = np.asarray(value)
    kinds, called = ("f", "floats") if ARRAYS[column.kind].startswith("float") else ("iu", "whole numbers")
    if array.ndim != 1 or (array.size and array.dtype.kind not in kinds):
        yield f"{column.name} is no array of {called}"
