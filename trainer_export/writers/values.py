"""Values of rows as JSON says them, for the formats that hold JSON."""

from typing import Any

from trainer_export.samples.rows import packed_rows
from trainer_export.samples.values import JsonObject
from trainer_export.shapes.base import Layout, Row
from trainer_export.shapes.columns import Kind
from trainer_export.shapes.native import NATIVE, document


def json_row(shape: Layout, row: Row) -> JsonObject:
    """A row as one JSON object; arrays stay arrays for the JSON writer."""
    if shape is NATIVE:
        return document(row)
    rows = {column.name for column in shape.columns if column.kind is Kind.ROWS}
    return {name: _packed(value) if name in rows else value for name, value in row.items()}


def _packed(value: Any) -> Any:
    return None if value is None else packed_rows(value)


def storable(text: str) -> str:
    """Text without lone surrogates, which no UTF-8 file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
