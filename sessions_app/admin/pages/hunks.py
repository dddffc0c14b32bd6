"""Differences of aligned id sequences as hunks of cells: what stands close together is shown together."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from sessions_app.insight.alignment import Block
from sessions_app.insight.spelling import spell
from sessions_app.insight.tokens import Reader
from sessions_app.packing import Ids

CONTEXT = 8
"""Equal ids shown on each side of a difference."""
MOST_HUNKS = 100
MOST_CELLS = 400
"""Ids of one lane of one hunk."""


@dataclass(frozen=True, slots=True)
class LaneIds:
    """One sequence."""

    name: str
    ids: Ids
    shown: bool


@dataclass(frozen=True, slots=True)
class Change:
    """A block that is not equal in all lanes, with the class of each lane's difference from the first."""

    block: Block
    kinds: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """One id of a lane."""

    id: int
    text: str
    special: bool
    differs: bool
    """It stands in a stretch that is not equal in all lanes."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A class of difference."""

    name: str
    meaning: str
    expected: bool


@dataclass(frozen=True, slots=True)
class LaneCells:
    """One lane of a hunk."""

    name: str
    start: int
    """Index of its first id that differs."""
    cells: list[Cell]
    hidden: int
    """Ids left out because there are too many."""
    kinds: list[Kind]
    """Classes of its differences from the served lane."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """Differences that stand close together, with what is equal around them."""

    number: int
    equal_before: int
    """Equal ids between it and the hunk before."""
    lanes: list[LaneCells]


@dataclass(frozen=True, slots=True)
class Hunks:
    """All of them, as far as they are shown."""

    hunks: list[Hunk]
    equal_after: int
    """Ids of the first lane behind the last difference."""


def hunks_of(
    lanes: Sequence[LaneIds],
    changes: Sequence[Change],
    reader: Reader,
    meanings: Mapping[str, str],
    expected: Set[str],
) -> Hunks:
    """The first MOST_HUNKS hunks. Changes are in the order of the first lane."""
    runs = _runs(changes)
    shown = [at for at, lane in enumerate(lanes) if lane.shown]
    words = {name: Kind(name, told, name in expected) for name, told in meanings.items()}
    hunks = [
        Hunk(number, _gap(runs, number), [_lane(lanes[at], at, run, reader, words) for at in shown])
        for number, run in enumerate(runs[:MOST_HUNKS])
    ]
    end = runs[-1][-1].block.bounds[0][1] if runs else 0
    return Hunks(hunks, len(lanes[0].ids) - end)


def _runs(changes: Sequence[Change]) -> list[list[Change]]:
    """Changes in groups: those of a group have less equal ids between them than are shown around each."""
    runs: list[list[Change]] = []
    for change in changes:
        start = change.block.bounds[0][0]
        if runs and start - runs[-1][-1].block.bounds[0][1] <= 2 * CONTEXT:
            runs[-1].append(change)
        else:
            runs.append([change])
    return runs


def _gap(runs: Sequence[Sequence[Change]], number: int) -> int:
    before = runs[number - 1][-1].block.bounds[0][1] if number else 0
    return runs[number][0].block.bounds[0][0] - before


def _lane(
    lane: LaneIds, at: int, run: Sequence[Change], reader: Reader, words: Mapping[str, Kind]
) -> LaneCells:
    start, end = run[0].block.bounds[at][0], run[-1].block.bounds[at][1]
    first = max(0, start - CONTEXT)
    wanted = min(end + CONTEXT, len(lane.ids))
    stop = min(wanted, first + MOST_CELLS)
    changed = [range(*change.block.bounds[at]) for change in run]
    ids = lane.ids[first:stop].tolist()
    spelled = enumerate(zip(ids, spell(ids, reader.decode), strict=True), first)
    return LaneCells(
        name=lane.name,
        start=start,
        cells=[
            Cell(number, spelling.text, number in reader.special_ids, any(place in one for one in changed))
            for place, (number, spelling) in spelled
        ],
        hidden=wanted - stop,
        kinds=[words[name] for name in dict.fromkeys(change.kinds[at] for change in run) if name is not None],
    )
