"""Repair of the hierarchy: calls that float under the session go below the span that encloses them most
tightly.

Only the direct children of the first node with more than one child are moved, in their listed order, and no
more once a single child is left. A child that would go below its own descendant is lost with everything
below it. Invariant: moved nodes become the last child of their new parent, so child order is no longer time
order.
"""

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from trainer_export.traces.enclosing import Interval, IntervalIndex
from trainer_export.traces.tree import Node
from trainer_export.traces.unknown_times import UnknownTimes

_MOST_ASKED = 128
"""Nodes of unknown order that are compared by where they hang."""


def repair_hierarchy(root: Node) -> None:
    """Move floating children in place."""
    top = root
    while len(top.children) == 1:
        top = top.children[0]
    if len(top.children) > 1:
        _Repair(top).run()


@dataclass(slots=True)
class _Place:
    """Where a node hangs now."""

    parent: Node
    rank: int
    """Orders the children of one parent; those moved in come after those that were there."""


class _Repair:
    """One repair of the children of one node.

    The order of nodes that moved is asked of their places, one by one; when many of them tie, all nodes are
    numbered anew. Each numbering is paid for by as many moves, so that no trace takes the square of its size.
    """

    def __init__(self, top: Node) -> None:
        self._top = top
        self._own_branch = {child: list(child.walk()) for child in top.children}
        self._nodes = [node for nodes in self._own_branch.values() for node in nodes]
        self._unknown_times = UnknownTimes(self._nodes)
        timed = [(_interval(node), node) for node in self._nodes]
        self._index = IntervalIndex((interval, node) for interval, node in timed if interval is not None)
        self._places = {
            child: _Place(parent, rank)
            for parent in [top, *self._nodes]
            for rank, child in enumerate(parent.children)
        }
        self._branch = {node: child for child, nodes in self._own_branch.items() for node in nodes}
        self._first: dict[Interval, Node] = {}
        """The first node, depth first, of shared intervals; dropped when one of their nodes moves."""
        self._shared = {child: set(self._shared_below(child)) for child in top.children}
        self._staying = dict.fromkeys(top.children)
        self._numbered = dict(self._own_branch)
        """Nodes below each child that stays whose order the index knows."""

    def run(self) -> None:
        """Visit the children in listed order."""
        for child in self._top.children:
            if len(self._staying) == 1:
                break
            parent = self._closest_parent(child)
            if parent is not None:
                del self._staying[child]
                self._move(child, parent)
        self._top.children = list(self._staying)

    def _closest_parent(self, child: Node) -> Node | None:
        """The first node, depth first, of the tightest enclosing interval."""
        self._unknown_times.refuse(child)
        inner = _interval(child)
        if inner is None:
            return None
        tightest = self._index.tightest_around(inner)
        if len(tightest) > _MOST_ASKED:
            self._number()
            tightest = self._index.tightest_around(inner)
        candidates = [self._first_of(interval) for interval in tightest]
        return self._first_in_order(candidates) if candidates else None

    def _first_in_order(self, nodes: Collection[Node]) -> Node:
        """Depth first; telling the order of deep nodes takes time, so a single one is not asked."""
        return next(iter(nodes)) if len(nodes) == 1 else min(nodes, key=self._path)

    def _first_of(self, interval: Interval) -> Node:
        members = self._index.members(interval)
        if len(members) == 1:
            return next(iter(members))
        if interval not in self._first:
            self._first[interval] = self._first_in_order(self._foremost(interval))
        return self._first[interval]

    def _foremost(self, interval: Interval) -> list[Node]:
        foremost = self._index.foremost(interval)
        if len(foremost) > _MOST_ASKED:
            self._number()
            foremost = self._index.foremost(interval)
        return foremost

    def _number(self) -> None:
        """Tell the index the order of all nodes as they hang now."""
        self._numbered = {child: list(child.walk()) for child in self._staying}
        nodes = (node for below in self._numbered.values() for node in below)
        timed = ((_interval(node), node) for node in nodes)
        self._index.reorder((interval, node) for interval, node in timed if interval is not None)

    def _shared_below(self, child: Node) -> Iterator[Interval]:
        for node in child.walk():
            interval = _interval(node)
            if interval is not None and len(self._index.members(interval)) > 1:
                yield interval

    def _move(self, child: Node, parent: Node) -> None:
        branch = self._branch_of(parent)
        moved = self._shared.pop(child)
        for interval in moved:
            self._first.pop(interval, None)
        if branch is child:
            self._forget(child)
            return
        self._shared[branch] = _united(self._shared[branch], moved)
        self._forget_order(child)
        self._branch[child] = parent
        self._places[child] = _Place(parent, len(self._nodes) + len(parent.children))
        parent.children.append(child)

    def _forget_order(self, child: Node) -> None:
        """Of all below the child whose order is known: the others are known to have moved."""
        for node in self._numbered.pop(child):
            interval = _interval(node)
            if interval is not None:
                self._index.forget_order(interval, node)

    def _forget(self, lost: Node) -> None:
        """What hangs in the air can no longer become a parent."""
        for node in lost.walk():
            self._unknown_times.forget(node)
            interval = _interval(node)
            if interval is not None:
                self._index.remove(interval, node)

    def _branch_of(self, node: Node) -> Node:
        """The direct child of the top that a node hangs below now (paths are shortened on the way)."""
        passed = []
        while self._branch[node] is not node:
            passed.append(node)
            node = self._branch[node]
        for earlier in passed:
            self._branch[earlier] = node
        return node

    def _path(self, node: Node) -> list[int]:
        """Ranks from the top down to the node; smaller is earlier in depth-first order."""
        ranks = []
        while node is not self._top:
            place = self._places[node]
            ranks.append(place.rank)
            node = place.parent
        return ranks[::-1]


def _united(one: set[Interval], other: set[Interval]) -> set[Interval]:
    """The smaller set goes into the larger one."""
    small, large = sorted((one, other), key=len)
    large.update(small)
    return large


def _interval(node: Node) -> Interval | None:
    """None when a time is unknown or not a number: such a node neither encloses nor is enclosed."""
    start, end = node.span.start_time, node.span.end_time
    if start is None or end is None or math.isnan(start) or math.isnan(end):
        return None
    return Interval(start, end)
