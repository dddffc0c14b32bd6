"""What a shape is, and the registry of shapes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from trainer_export.samples.rows import SampleRow
from trainer_export.shapes.columns import Column

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a row stands in its export; the same at every run of the same job."""

    index: int
    """Number of the row: unique and growing, with gaps."""
    group_index: int
    """Number of its rollout group."""
    rollout_index: int
    """Number of its rollout."""


class Layout(Protocol):
    """What files need to know of a shape, wherever its rows come from."""

    @property
    def name(self) -> str:
        """As requests name it."""
        ...

    @property
    def schema(self) -> str:
        """Name and version; stands in every file."""
        ...

    @property
    def columns(self) -> Sequence[Column]:
        """In their order."""
        ...

    @property
    def check(self) -> Callable[[Row], Iterator[str]]:
        """What is wrong with a row beyond the kinds of its columns."""
        ...


@dataclass(frozen=True, slots=True)
class Shape:
    """One trainer's rows."""

    name: str
    schema: str
    """Name and version; stands in every file."""
    summary: str
    columns: Sequence[Column]
    cut: Callable[[SampleRow, Place], Sequence[Row]]
    """The rows that a native row becomes: one, or one per turn."""
    check: Callable[[Row], Iterator[str]]
    """What is wrong with a row beyond the kinds of its columns."""


SHAPES: dict[str, Shape] = {}
"""Shapes by the name that requests use."""


def shape(found: Shape) -> Shape:
    """Registers a shape."""
    SHAPES[found.name] = found
    return found
