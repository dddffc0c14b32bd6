"""JSON Lines: one row a line, UTF-8, as the shape documents it."""

from pathlib import Path

from sessions_app.json_text import dumps
from trainer_export.shapes.base import Layout, Row
from trainer_export.writers.base import writer
from trainer_export.writers.values import json_row


@writer("jsonl")
class JsonlWriter:
    """Buffers nothing but what the file object does."""

    def __init__(self, path: Path, shape: Layout) -> None:
        self._shape = shape
        self._file = path.open("wb")

    def write(self, row: Row) -> None:
        """One line."""
        self._file.write(dumps(json_row(self._shape, row)) + b"\n")

    def close(self) -> None:
        """Everything is with the operating system afterwards."""
        self._file.close()

    def abandon(self) -> None:
        """Close without a promise."""
        self._file.close()
