"""Filters on rows, as part of picking: who owns a shared completion is decided among the rows that stay."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from trainer_export.jobs.filters import Filters
from trainer_export.samples.hooks import Hooks, pick
from trainer_export.samples.native import DroppedLeaf, SessionRows
from trainer_export.samples.pickers.base import Picker
from trainer_export.samples.reasons import Reason
from trainer_export.samples.sample import Sample
from trainer_export.samples.values import JsonObject


@dataclass(frozen=True, slots=True)
class WeightWindow:
    """Weights that may have sampled a trained token. None = no bound."""

    least: int | None
    most: int | None

    def holds(self, sample: Sample) -> bool:
        """Every merged turn names its weights by a number within the window."""
        kept = {span.seq for span in sample.spans if span.length}
        versions = [as_version(turn.weight_version) for turn in sample.leaf.turns if turn.seq in kept]
        return all(version is not None and self._within(version) for version in versions)

    def _within(self, version: int) -> bool:
        return (self.least is None or version >= self.least) and (self.most is None or version <= self.most)


def as_version(value: Any) -> int | None:
    """A weight version as a number; None for what is none."""
    if isinstance(value, bool):
        return None
    try:
        return int(value)
    except (OverflowError, TypeError, ValueError):
        return None


@dataclass(slots=True)
class FilteredPicker:
    """A picker whose choice is filtered; remembers which leaf which filter left out. One per session."""

    picker: Picker
    filters: Filters
    window: WeightWindow | None
    rejected: dict[int, str] = field(default_factory=dict)

    def __call__(self, leaves: list[Sample], session_metadata: JsonObject) -> list[Sample]:
        """The picker's choice without what a filter rejects."""
        picked = pick(self.picker, leaves, session_metadata)
        return [sample for sample in picked if self.passes(sample)]

    def passes(self, sample: Sample) -> bool:
        """Whether no filter rejects a sample; the first that does is remembered."""
        for name, holds in self._tests():
            if not holds(sample):
                self.rejected[sample.leaf.last.seq] = name
                return False
        return True

    def _tests(self) -> list[tuple[str, Callable[[Sample], bool]]]:
        filters, window = self.filters, self.window
        tests: list[tuple[str, Callable[[Sample], bool]]] = []
        if filters.root_class is not None:
            classes = filters.root_class
            tests.append(("root_class", lambda sample: sample.leaf.turns[0].root_class in classes))
        if filters.agent is not None:
            agents = filters.agent
            tests.append(("agent", lambda sample: sample.leaf.last.agent in agents))
        if filters.status is not None:
            statuses = filters.status
            tests.append(("status", lambda sample: str(sample.status) in statuses))
        if window is not None:
            tests.append(("weight_version", window.holds))
        return tests


def filtered(hooks: Hooks, filters: Filters, window: WeightWindow | None) -> tuple[Hooks, FilteredPicker]:
    """The hooks with filters on what the picker chooses, and where to read what they left out."""
    picker = FilteredPicker(hooks.picker, filters, window)
    return replace(hooks, picker=picker), picker


def held_back(made: SessionRows, picker: FilteredPicker) -> SessionRows:
    """The rows of a session whose policy runs no hooks: filtered all the same."""
    if all(picker.passes(sample) for sample in made.samples):
        return made
    count = made.report.count
    masked = dict(count.masked)
    masked[Reason.NOT_PICKED] = masked.get(Reason.NOT_PICKED, 0) + count.trained
    dropped = tuple(DroppedLeaf(seq, Reason.NOT_PICKED, None) for seq in picker.rejected)
    report = replace(
        made.report,
        rows=0,
        dropped=dropped,
        count=replace(count, trained=0, masked=masked),
        empty_reason="all_truncated",
    )
    return SessionRows([], [], report)


def window_of(filters: Filters, weights_now: int | None) -> WeightWindow | None:
    """The window of a session; `weights_now`: what its profile served when the input was frozen."""
    least = filters.min_weight_version
    if filters.max_staleness is not None:
        oldest = (weights_now or 0) - filters.max_staleness
        least = oldest if least is None else max(least, oldest)
    if least is None and filters.max_weight_version is None:
        return None
    return WeightWindow(least, filters.max_weight_version)
