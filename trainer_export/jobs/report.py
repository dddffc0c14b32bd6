"""What came of an export: every session, node and generated token accounted for. Sums of sums stay sums."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainer_export.samples.native import SessionReport
from trainer_export.samples.reasons import Reason
from trainer_export.samples.rows import SampleRow
from trainer_export.samples.values import JsonObject, SessionForest
from trainer_export.traces.better.report import Entry
from trainer_export.traces.rows.session_rows import RowOutcome

_FAILED = "failed"
_FAILURES_KEPT = 20
_UNPROVEN = (Reason.CONTEXT, Reason.LOGPROB)


@dataclass(slots=True)
class Tally:
    """Counts of a shard, or of a whole job."""

    sessions: int = 0
    rows: int = 0
    tokens: int = 0
    trained_tokens: int = 0
    generated_tokens: int = 0
    unsampled: int = 0
    nodes: int = 0
    masked: Counter[str] = field(default_factory=Counter)
    """Generated tokens that no row trains, by reason."""
    statuses: Counter[str] = field(default_factory=Counter)
    """Rows by status."""
    dropped_sessions: Counter[str] = field(default_factory=Counter)
    dropped_leaves: Counter[str] = field(default_factory=Counter)
    dropped_nodes: Counter[str] = field(default_factory=Counter)
    """Nodes that stand in no row, by reason."""
    traces: dict[str, Counter[str]] = field(default_factory=dict)
    """Of shapes that come from traces: spans by use, remarks, breaks by class, rows and calls left out."""
    failures: list[JsonObject] = field(default_factory=list)
    """The first sessions that could not be assembled, with what was said."""

    def add(
        self, forest: SessionForest, report: SessionReport, filtered: Mapping[int, str], kept: set[int]
    ) -> None:
        """One session. `filtered`: leaves that a filter of the job left out; `kept`: nodes in rows."""
        self.sessions += 1
        self.nodes += report.nodes
        self.generated_tokens += report.count.generated
        self.masked.update(report.count.masked)
        reasons = {
            one.leaf: f"filtered_{filtered[one.leaf]}" if one.leaf in filtered else str(one.reason)
            for one in report.dropped
        }
        self.dropped_leaves.update(reasons.values())
        self.dropped_nodes.update(_nodes(forest, reasons, kept))
        if not report.rows:
            self.dropped_sessions[_session_reason(report, reasons)] += 1

    def add_row(self, row: SampleRow) -> None:
        """One row."""
        self.rows += 1
        self.tokens += len(row.tokens)
        self.trained_tokens += row.trained
        self.unsampled += row.unsampled
        self.statuses[row.status] += 1

    def drop(self, reason: str) -> None:
        """A session that is not looked at."""
        self.sessions += 1
        self.dropped_sessions[reason] += 1

    def refuse(self, session_id: str, completions: Sequence[int], said: str) -> None:
        """A session that could not be assembled; `completions`: ids that each of its nodes sampled."""
        self.drop(_FAILED)
        self.nodes += len(completions)
        self.generated_tokens += sum(completions)
        for counter, count in ((self.masked, sum(completions)), (self.dropped_nodes, len(completions))):
            if count:
                counter[_FAILED] += count
        self._say(session_id, said)

    def failed(self, session_id: str, said: str) -> None:
        """A session, counted before, whose traces could not be converted."""
        self.dropped_sessions[_FAILED] += 1
        self._say(session_id, said)

    def _say(self, session_id: str, said: str) -> None:
        if len(self.failures) < _FAILURES_KEPT:
            self.failures.append({"session": session_id, "said": said[:500]})

    def add_trace(self, entries: Sequence[Entry], outcome: RowOutcome) -> None:
        """What became of the spans of a session, and of its rows."""
        self._add("spans", Counter(str(entry.use) for entry in entries))
        self._add("remarks", Counter(str(remark) for entry in entries for remark in entry.remarks))
        self._add("mismatches", outcome.mismatches)
        counts = {"skipped": outcome.skipped, "truncated": outcome.truncated}
        self._add("rows", Counter({name: count for name, count in counts.items() if count}))

    def _add(self, name: str, counts: Mapping[str, int]) -> None:
        self.traces.setdefault(name, Counter()).update(counts)

    def merge(self, other: Mapping[str, Any]) -> None:
        """Add the counts of another tally's JSON."""
        for name in _NUMBERS:
            setattr(self, name, getattr(self, name) + other[name])
        for name in _COUNTERS:
            getattr(self, name).update(other[name])
        for name, counts in other.get("traces", {}).items():
            self._add(name, counts)
        self.failures = (self.failures + other["failures"])[:_FAILURES_KEPT]

    def as_json(self) -> JsonObject:
        """Keys in a fixed order."""
        numbers = {name: getattr(self, name) for name in _NUMBERS}
        counters: JsonObject = {name: dict(sorted(getattr(self, name).items())) for name in _COUNTERS}
        proof = {
            "proven": self.trained_tokens,
            "unproven": {str(reason): self.masked[str(reason)] for reason in _UNPROVEN},
            "unsampled": self.unsampled,
            "adds_up": self.generated_tokens == self.trained_tokens + self.masked.total(),
        }
        empty = None if self.rows else self._why_empty()
        if self.traces:
            counters["traces"] = {name: dict(sorted(found.items())) for name, found in self.traces.items()}
        return {**numbers, **counters, "proof": proof, "failures": self.failures, "empty_reason": empty}

    def _why_empty(self) -> str:
        if not self.sessions:
            return "no session passes the filters"
        reasons = ", ".join(f"{reason}: {count}" for reason, count in self.dropped_sessions.most_common())
        return f"no session gave a row ({reasons})"


_NUMBERS = ("sessions", "rows", "tokens", "trained_tokens", "generated_tokens", "unsampled", "nodes")
_COUNTERS = ("masked", "statuses", "dropped_sessions", "dropped_leaves", "dropped_nodes")


def _nodes(forest: SessionForest, reasons: Mapping[int, str], kept: set[int]) -> list[str]:
    """Of each node in no row the reason of the first leaf below it."""
    parents = {turn.seq: turn.parent for turn in forest.turns}
    found: dict[int, str] = {}
    for leaf, reason in reasons.items():
        at: int | None = leaf
        while at is not None and at not in kept and at not in found:
            found[at] = reason
            at = parents[at]
    rest = [seq for seq in parents if seq not in found and seq not in kept]
    return [*found.values(), *[str(Reason.ROLLED_BACK)] * len(rest)]


def _session_reason(report: SessionReport, reasons: Mapping[int, str]) -> str:
    if report.empty_reason == "no_records":
        return "no_records"
    named = set(reasons.values())
    return named.pop() if len(named) == 1 else report.empty_reason or "all_truncated"


def differences(one: Any, other: Any, where: str = "") -> dict[str, list[Any]]:
    """What differs between two reports: path to both values; {} for equal ones."""
    if isinstance(one, dict) and isinstance(other, dict):
        found: dict[str, list[Any]] = {}
        for name in sorted({*one, *other}):
            below = f"{where}.{name}" if where else name
            found |= differences(one.get(name), other.get(name), below)
        return found
    return {} if one == other else {where: [one, other]}
