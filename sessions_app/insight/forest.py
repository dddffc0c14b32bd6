"""The shape of a session's forest: one line a node, and counts over all of it. Reads only."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from sessions_app.models import HistoryEvent, Node, Record


@dataclass(frozen=True, slots=True)
class NodeLine:
    """A node and its record, without messages and ids."""

    seq: int
    parent: int | None
    root: int
    depth: int
    kind: str
    cause: str | None
    retry_of: int | None
    root_class: str | None
    agent: str | None
    finish_reason: str
    ill_formed: bool
    message_start: int
    message_count: int
    prompt_tokens: int
    total_tokens: int
    version_dispatch: str | None
    version: str | None
    response_id: str | None
    committed_at: datetime
    record: int
    record_state: str
    reused_tokens: int | None
    added_tokens: int | None
    cached_tokens: int | None
    prepare_ms: float | None
    engine_ms: float | None
    commit_ms: float | None

    @property
    def generated(self) -> int:
        """Sampled ids."""
        return self.total_tokens - self.prompt_tokens


_COLUMNS = (
    "seq", "parent_seq", "root_seq", "depth", "attach_kind", "cause", "retry_of", "root_class", "agent",
    "finish_reason", "ill_formed", "message_start", "message_count", "prompt_tokens", "total_tokens",
    "weight_version_dispatch", "weight_version", "response_id", "committed_at", "record_id",
)  # fmt: skip
_RECORD_COLUMNS = (
    "id", "state", "reused_tokens", "added_tokens", "cached_tokens", "prepare_ms", "engine_ms", "commit_ms",
)  # fmt: skip
_NO_RECORD = ("intent", None, None, None, None, None, None)


def load_lines(session_id: UUID, start: int, stop: int) -> list[NodeLine]:
    """The nodes with seq from `start` up to, not including, `stop`, in commit order. Two statements."""
    nodes = Node.objects.filter(session=session_id, seq__gte=start, seq__lt=stop).order_by("seq")
    rows = list(nodes.values_list(*_COLUMNS))
    found = Record.objects.filter(session=session_id, id__in=[row[-1] for row in rows]).order_by()
    records = {row[0]: row[1:] for row in found.values_list(*_RECORD_COLUMNS)}
    return [NodeLine(*row, *records.get(row[-1], _NO_RECORD)) for row in rows]


@dataclass(frozen=True, slots=True)
class ForestFacts:
    """Counts over a whole session."""

    turns: int
    roots: int
    leaves: int
    truncated: int
    ill_formed: int
    kinds: Mapping[str, int]
    """Nodes by attach kind."""
    causes: Mapping[str, int]
    """Events by cause."""
    states: Mapping[str, int]
    """Records by state."""
    fed_tokens: int
    """Ids fed, summed over committed turns."""
    reused_tokens: int
    """Of these: stored ids fed again."""
    added_tokens: int
    """Of these: tokenised from new messages."""
    generated_tokens: int


def load_leaf_tokens(session_id: UUID) -> int:
    """Tokens of all leaves together: what one row a leaf holds."""
    nodes = Node.objects.filter(session=session_id)
    inner = nodes.filter(parent_seq=OuterRef("seq"))
    total = nodes.order_by().filter(~Exists(inner)).aggregate(n=Coalesce(Sum("total_tokens"), 0))
    return int(total["n"])


def load_facts(session_id: UUID) -> ForestFacts:
    """The counts, in four statements."""
    nodes = Node.objects.filter(session=session_id).order_by()
    totals = nodes.aggregate(
        turns=Count("*"),
        inner=Count("parent_seq", distinct=True),
        fed=Coalesce(Sum("prompt_tokens"), 0),
        all=Coalesce(Sum("total_tokens"), 0),
        cut=Count("seq", filter=Q(finish_reason="length")),
        ill=Count("seq", filter=Q(ill_formed=True)),
        rooted=Count("seq", filter=Q(parent_seq__isnull=True)),
    )
    kinds = _by(nodes, "attach_kind")
    causes = _by(HistoryEvent.objects.filter(session=session_id).order_by(), "cause")
    records = Record.objects.filter(session=session_id).order_by()
    by_state = records.values("state").annotate(
        n=Count("*"), reused=Coalesce(Sum("reused_tokens"), 0), added=Coalesce(Sum("added_tokens"), 0)
    )
    states = {row["state"]: row for row in by_state}
    stored = [states[state] for state in ("committed", "confirmed") if state in states]
    return ForestFacts(
        turns=totals["turns"],
        roots=totals["rooted"],
        leaves=totals["turns"] - totals["inner"],
        truncated=totals["cut"],
        ill_formed=totals["ill"],
        kinds=kinds,
        causes=causes,
        states={state: row["n"] for state, row in sorted(states.items())},
        fed_tokens=totals["fed"],
        reused_tokens=sum(row["reused"] for row in stored),
        added_tokens=sum(row["added"] for row in stored),
        generated_tokens=totals["all"] - totals["fed"],
    )


def _by(rows: QuerySet, column: str) -> dict[str, int]:
    """Rows by the values of a column, most frequent first."""
    counted = rows.values(word=F(column)).annotate(n=Count("*"))
    return {row["word"]: row["n"] for row in counted.order_by("-n", "word")}
