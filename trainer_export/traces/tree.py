"""The trace tree: flat spans -> one root node.

Real roots come first in list order, then one virtual node for every parent id that nobody has, in the order
those ids are first named (the reference leaves that order to chance). Several roots hang under a node
`virtual-root`. Invariant: a node's children are in the order their spans were listed; a span listed twice
stands in the tree twice.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from trainer_export.traces.names import VIRTUAL, VIRTUAL_ROOT
from trainer_export.traces.span import Span

MAX_REPEATED = 100_000
"""Spans listed twice multiply their subtrees; a tree with more nodes than spans and this is refused."""


@dataclass(eq=False, slots=True)
class Node:
    """A span and what hangs below it. Compared by identity: one span can stand in several places."""

    id: str
    """The span's id; for virtual nodes the missing id, or `virtual-root`."""
    span: Span
    children: list["Node"] = field(default_factory=list)

    def walk(self) -> Iterator["Node"]:
        """This node and everything below, depth first in child order."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))


def build_tree(spans: Sequence[Span]) -> Node:
    """The tree of one list of spans. Cycles beside a root are left out; rollout and trace ids are not
    looked at.
    """
    if not spans:
        raise ValueError("No spans provided to create TraceTree.")
    by_id = {span.span_id: span for span in spans}
    child_ids: dict[str, list[str]] = {}
    root_ids: list[str] = []
    for span in spans:
        if span.parent_id is None:
            root_ids.append(span.span_id)
        else:
            child_ids.setdefault(span.parent_id, []).append(span.span_id)
    root_ids.extend(parent_id for parent_id in child_ids if parent_id not in by_id)
    if not root_ids:
        raise ValueError("No root spans found in the trace.")
    roots = _Builder(by_id, child_ids).subtrees(root_ids)
    return roots[0] if len(roots) == 1 else _joined(roots)


def _joined(roots: list[Node]) -> Node:
    """Start of the first and end of the last root, which need not be the earliest and the latest."""
    first, last = roots[0].span, roots[-1].span
    return Node(
        VIRTUAL_ROOT, _virtual(VIRTUAL_ROOT, VIRTUAL_ROOT, first, first.start_time, last.end_time), roots
    )


def _virtual(span_id: str, name: str, like: Span, start: float | None, end: float | None) -> Span:
    return Span(
        span_id=span_id,
        parent_id=None,
        name=name,
        attributes={},
        start_time=start,
        end_time=end,
        sequence_id=like.sequence_id,
        trace_id=like.trace_id,
        rollout_id=like.rollout_id,
        attempt_id=like.attempt_id,
    )


class _Builder:
    """Expands ids to nodes bottom-up without recursion."""

    def __init__(self, by_id: dict[str, Span], child_ids: dict[str, list[str]]) -> None:
        self._by_id = by_id
        self._child_ids = child_ids
        self._count = 0
        self._limit = sum(map(len, child_ids.values())) + MAX_REPEATED

    def subtrees(self, root_ids: list[str]) -> list[Node]:
        return [self._subtree(root_id) for root_id in root_ids]

    def _subtree(self, root_id: str) -> Node:
        """Children are finished before their parent, because a virtual parent takes its times from them."""
        finished: list[Node] = []
        open_ids = {root_id}
        stack = [(root_id, iter(self._child_ids.get(root_id, ())), finished, list[Node]())]
        while stack:
            node_id, remaining, into, children = stack[-1]
            child_id = next(remaining, None)
            if child_id is None:
                stack.pop()
                open_ids.discard(node_id)
                into.append(self._node(node_id, children))
            else:
                self._enter(child_id, open_ids)
                stack.append((child_id, iter(self._child_ids.get(child_id, ())), children, []))
        return finished[0]

    def _enter(self, child_id: str, open_ids: set[str]) -> None:
        if child_id in open_ids:
            raise RecursionError(f"Span {child_id} is its own ancestor.")
        self._count += 1
        if self._count > self._limit:
            raise ValueError("Repeated spans multiply each other: the trace is too large.")
        open_ids.add(child_id)

    def _node(self, node_id: str, children: list[Node]) -> Node:
        span = self._by_id.get(node_id)
        if span is None:
            first = children[0].span
            start = min(child.span.start_time for child in children if child.span.start_time is not None)
            end = max(child.span.end_time for child in children if child.span.end_time is not None)
            span = _virtual(node_id, VIRTUAL, first, start, end)
        return Node(node_id, span, children)
