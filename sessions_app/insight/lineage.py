"""Where the nodes of a forest stand in its picture: columns in commit order, one lane a lineage. Pure.

A lineage runs from a root or a branch to its leaf through first children. It keeps one lane, and a lane is
used again when its lineage has ended. Straight chains become one glyph. Invariant: every node is in exactly
one glyph, a column holds one glyph, and no lineage runs over another one's glyph in its lane.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

CHAIN = 4
"""Shortest straight chain that becomes one glyph."""


@dataclass(frozen=True, slots=True)
class Place:
    """What the picture needs of a node."""

    seq: int
    parent: int | None
    marked: bool
    """Shown by itself whatever stands around it: truncated, a fork, the focus, …"""


@dataclass(frozen=True, slots=True)
class Glyph:
    """A node, or a chain of nodes, in the picture."""

    seqs: tuple[int, ...]
    column: int
    lane: int
    parent: int | None
    """Place of the glyph it continues in `Lineage.glyphs`; None for a root."""

    @property
    def first(self) -> int:
        """Seq of its first node."""
        return self.seqs[0]

    @property
    def last(self) -> int:
        """Seq of its last node."""
        return self.seqs[-1]


@dataclass(frozen=True, slots=True)
class Lineage:
    """The whole picture."""

    glyphs: tuple[Glyph, ...]
    """In column order."""
    lanes: int


def lay_out(places: Sequence[Place], *, collapse: bool) -> Lineage:
    """The picture of nodes in commit order. Parents that are not among them make roots."""
    children = _children(places)
    groups = _chains(places, children) if collapse else [(place.seq,) for place in places]
    member: dict[int | None, int] = {seq: at for at, group in enumerate(groups) for seq in group}
    parents = {place.seq: place.parent for place in places}
    above = [member.get(parents[group[0]]) for group in groups]
    lanes = _lanes(groups, above)
    glyphs = [
        Glyph(group, column, lane, parent)
        for column, (group, lane, parent) in enumerate(zip(groups, lanes, above, strict=True))
    ]
    return Lineage(tuple(glyphs), max(lanes, default=-1) + 1)


def _children(places: Iterable[Place]) -> Mapping[int | None, list[Place]]:
    children: dict[int | None, list[Place]] = defaultdict(list)
    for place in places:
        children[place.parent].append(place)
    return children


def _chains(places: Sequence[Place], children: Mapping[int | None, list[Place]]) -> list[tuple[int, ...]]:
    """Groups of nodes in order of their first one: runs of only children that nothing marks, else single
    ones.

    A run's nodes may be committed between those of others; its glyph stands where the run begins.
    """
    taken: set[int] = set()
    groups = []
    for place in places:
        if place.seq in taken:
            continue
        run = _run(place, children)
        group = tuple(run) if len(run) >= CHAIN else (place.seq,)
        taken.update(group)
        groups.append(group)
    return groups


def _run(place: Place, children: Mapping[int | None, list[Place]]) -> list[int]:
    """The node and what follows it without a branch or a mark; empty for a node that stands by itself."""
    run: list[int] = []
    while not place.marked:
        following = children.get(place.seq, [])
        if len(following) != 1:
            break
        run.append(place.seq)
        place = following[0]
    return run


def _lanes(groups: Sequence[Collection[int]], above: Sequence[int | None]) -> list[int]:
    """A lane for each group."""
    following: dict[int, list[int]] = defaultdict(list)
    for at, parent in enumerate(above):
        if parent is not None:
            following[parent].append(at)
    lanes = [-1] * len(groups)
    occupied: list[int] = []
    for at, parent in enumerate(above):
        if parent is not None and following[parent][0] == at:
            lanes[at] = lanes[parent]
            continue
        least = 0 if parent is None else lanes[parent] + 1
        lanes[at] = _free_lane(occupied, least, at)
        occupied[lanes[at]] = _lineage_end(at, following)
    return lanes


def _free_lane(occupied: list[int], least: int, column: int) -> int:
    """The first lane from `least` on whose lineage has ended; `occupied` grows where there is none."""
    for lane in range(least, len(occupied)):
        if occupied[lane] < column:
            return lane
    while len(occupied) < least:
        occupied.append(-1)
    occupied.append(-1)
    return len(occupied) - 1


def _lineage_end(at: int, following: Mapping[int, list[int]]) -> int:
    """The column of a lineage's leaf."""
    while branches := following.get(at):
        at = branches[0]
    return at
