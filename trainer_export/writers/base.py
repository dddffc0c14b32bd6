"""What a writer is, and the registry of writers."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from trainer_export.shapes.base import Layout, Row


class Writer(Protocol):
    """Writes one file."""

    def write(self, row: Row) -> None:
        """Add a row."""
        ...

    def close(self) -> None:
        """Finish the file."""
        ...

    def abandon(self) -> None:
        """Let go of everything; what was written is no file."""
        ...


Opener = Callable[[Path, Layout], Writer]
WRITERS: dict[str, Opener] = {}
"""Writers by the name of their format, which is also the ending of their files."""

T = TypeVar("T", bound=Opener)


def writer(format: str) -> Callable[[T], T]:
    """Registers a writer."""

    def register(opener: T) -> T:
        WRITERS[format] = opener
        return opener

    return register


def open_writer(format: str, path: Path, shape: Layout) -> Writer:
    """A writer of a local file."""
    return WRITERS[format](path, shape)
