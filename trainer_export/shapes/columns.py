"""Kinds of columns: what a value is in a row, in Parquet, in JSON and in a tensor file.

A row is a mapping of column names to values: numpy arrays for what is counted per token, plain Python values
for the rest, `None` where the column allows it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a column holds."""

    TEXT = "text"
    INTEGER = "integer"
    """64 bit."""
    NUMBER = "number"
    """float64."""
    FLAG = "flag"
    IDS = "ids"
    """int32 array."""
    LONGS = "longs"
    """int64 array."""
    MASK = "mask"
    """uint8 array."""
    FLOATS = "floats"
    """float32 array."""
    DOUBLES = "doubles"
    """float64 array."""
    TEXTS = "texts"
    """List of texts."""
    JSON = "json"
    """Any JSON value; a text in Parquet."""
    ROWS = "rows"
    """Replay rows: int32 array of shape (tokens - 1, layers, k); bytes with their shape in Parquet."""
    RECORDS = "records"
    """List of objects with the fields of the column."""


ARRAYS = {
    Kind.IDS: "int32",
    Kind.LONGS: "int64",
    Kind.MASK: "uint8",
    Kind.FLOATS: "float32",
    Kind.DOUBLES: "float64",
}
"""Kinds that are one-dimensional arrays, and their numpy types."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a shape."""

    name: str
    kind: Kind
    meaning: str
    """For the documentation."""
    optional: bool = False
    """May be null."""
    fields: "Sequence[Column]" = ()
    """Of RECORDS."""
