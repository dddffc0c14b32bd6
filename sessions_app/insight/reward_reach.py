"""What each reported reward touched: the rows whose number it entered, the rows it stands in as the reward of
a turn, or why neither. Pure.

Invariant: the number told for a row is the one that assembling gives it, before hooks change it (tested).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

POLICY = (
    "A row is worth the rewards of its leaf. A leaf without any takes those of the whole session.",
    "Several at one place add up, each times its weight.",
    "The reward of a turn that was continued stands in the rows with that turn, and enters no row's number.",
)
"""The rule in words, as a page says it."""


@dataclass(frozen=True, slots=True)
class Given:
    """A reported reward."""

    id: int
    node: int | None
    """None: for the whole session."""
    value: float
    weight: float


@dataclass(frozen=True, slots=True)
class Row:
    """A row as far as rewards go."""

    leaf: int
    path: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reach:
    """What one reward touched."""

    id: int
    enters: list[int]
    """Leaves of the rows whose number it is part of."""
    stands_in: list[int]
    """Leaves of the rows that hold it as the reward of a turn."""
    outranked: list[int]
    """Leaves that have rewards of their own instead of this one of the session."""
    missed: str | None
    """Why it reached no row at all."""


@dataclass(frozen=True, slots=True)
class Worth:
    """What a row is worth by the reports."""

    leaf: int
    number: float | None
    """None: nothing was reported for it."""
    parts: list[int]
    """Ids of the rewards that add up to it."""


def reach_of(given: Sequence[Given], rows: Sequence[Row], dropped: Mapping[int, str]) -> list[Reach]:
    """Every reward's. `dropped`: leaves without a row, with the reason."""
    own = {one.node for one in given}
    return [_reach(one, own, rows, dropped) for one in given]


def _reach(one: Given, own: set[int | None], rows: Sequence[Row], dropped: Mapping[int, str]) -> Reach:
    if one.node is None:
        enters = _leaves(row for row in rows if row.leaf not in own)
        outranked = _leaves(row for row in rows if row.leaf in own)
        missed = None if rows else "the session has no row"
        return Reach(one.id, enters, [], outranked, missed)
    enters = _leaves(row for row in rows if row.leaf == one.node)
    stands_in = _leaves(row for row in rows if row.leaf != one.node and one.node in row.path)
    missed = None if enters or stands_in else _missed(one.node, dropped)
    return Reach(one.id, enters, stands_in, [], missed)


def _missed(node: int, dropped: Mapping[int, str]) -> str:
    if node in dropped:
        return f"its leaf has no row: {dropped[node]}"
    return "no row goes through its node"


def _leaves(rows: Iterable[Row]) -> list[int]:
    return list(dict.fromkeys(row.leaf for row in rows))


def worth_of(given: Sequence[Given], rows: Sequence[Row]) -> list[Worth]:
    """What each row is worth."""
    return [_worth(row, given) for row in rows]


def _worth(row: Row, given: Sequence[Given]) -> Worth:
    parts = [one for one in given if one.node == row.leaf] or [one for one in given if one.node is None]
    number = sum(one.value * one.weight for one in parts) if parts else None
    return Worth(row.leaf, number, [one.id for one in parts])
