"""Comparing with a time nobody recorded raises TypeError, exactly where the reference's comparisons would.

Only the first nodes of each kind need to be looked at: whatever else could fail to compare fails at them.
"""

from collections.abc import Sequence
from itertools import islice

from trainer_export.traces.tree import Node


class UnknownTimes:
    """Knows which nodes of one repair can make a comparison fail."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._order = {node: position for position, node in enumerate(nodes)}
        started = sorted((node for node in nodes if node.span.start_time is not None), key=_start)
        not_started = [node for node in nodes if node.span.start_time is None]
        not_ended = [node for node in started if node.span.end_time is None]
        self._kinds = (nodes, started, not_started, not_ended) if not_started or not_ended else ()
        self._lost: set[Node] = set()

    def forget(self, node: Node) -> None:
        """The node no longer takes part."""
        self._lost.add(node)

    def refuse(self, child: Node) -> None:
        """Raise TypeError where looking for a parent of `child` would compare with an unknown time."""
        probes = {node for kind in self._kinds for node in islice(self._others(kind, child), 1)}
        for node in sorted(probes, key=self._order.__getitem__):
            _encloses(node, child)

    def _others(self, kind: Sequence[Node], child: Node) -> "filter[Node]":
        return filter(lambda node: node.id != child.id and node not in self._lost, kind)


def _start(node: Node) -> float:
    start = node.span.start_time
    assert start is not None
    return start


def _encloses(node: Node, child: Node) -> bool:
    """Plain comparisons: they raise by themselves."""
    outer, inner = node.span, child.span
    return outer.start_time <= inner.start_time and outer.end_time >= inner.end_time  # type: ignore[operator]
