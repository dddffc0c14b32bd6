"""Parents and children of one attempt: several roots are normal, missing parents are roots, cycles are
broken.

Invariant: every span stands in the forest exactly once; children are in order of (sequence, start, id).
"""

from collections.abc import Iterator, Sequence

from trainer_export.traces.better.report import Remark, Report
from trainer_export.traces.span import Span


class Forest:
    """Changeable parents over immutable spans."""

    def __init__(self, spans: Sequence[Span], report: Report) -> None:
        self.spans = list(spans)
        """In canonical order."""
        self.by_id = {span.span_id: span for span in spans}
        self._order = {span.span_id: position for position, span in enumerate(spans)}
        self._parent = {span.span_id: self._known_parent(span, report) for span in spans}
        self._break_cycles(report)
        self._children: dict[str | None, list[str]] | None = None

    def _known_parent(self, span: Span, report: Report) -> str | None:
        if span.parent_id is None or span.parent_id in self.by_id:
            return span.parent_id
        report.remark(span.span_id, Remark.MISSING_PARENT)
        return None

    def _break_cycles(self, report: Report) -> None:
        """Cut each cycle above its first span in canonical order."""
        settled: set[str] = set()
        for span in self.spans:
            path: dict[str, None] = {}
            current: str | None = span.span_id
            while current is not None and current not in settled and current not in path:
                path[current] = None
                current = self._parent[current]
            if current in path:
                walked = list(path)
                cycle = walked[walked.index(str(current)) :]
                first = min(cycle, key=self._order.__getitem__)
                self._parent[first] = None
                report.remark(first, Remark.CYCLE_BROKEN)
            settled.update(path)

    def parent(self, span_id: str) -> str | None:
        """None for roots."""
        return self._parent[span_id]

    def move(self, span_id: str, parent_id: str) -> None:
        """Hang a span elsewhere; the caller makes sure that it is not below itself."""
        self._parent[span_id] = parent_id
        self._children = None

    def children(self, span_id: str | None) -> list[str]:
        """Of a span, or the roots (None)."""
        if self._children is None:
            self._children = {}
            for span in self.spans:
                self._children.setdefault(self._parent[span.span_id], []).append(span.span_id)
        return self._children.get(span_id, [])

    def walk(self) -> Iterator[tuple[str, bool]]:
        """Every span twice: (id, True) before and (id, False) after everything below it."""
        stack = [(root, True) for root in reversed(self.children(None))]
        while stack:
            span_id, entering = stack.pop()
            yield span_id, entering
            if entering:
                stack.append((span_id, False))
                stack.extend((child, True) for child in reversed(self.children(span_id)))
