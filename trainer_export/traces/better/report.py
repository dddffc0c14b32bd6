"""What became of each span, and why: the closed lists of uses and remarks, and the builder that fills them
in.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Use(StrEnum):
    """The one outcome of a span. The first four are used, the rest is not."""

    CALL = "call"
    JOINED = "joined"
    """A second record of a call that is used; what it knows was taken over."""
    REWARD = "reward"
    AGENT = "agent"
    """Gives its name to calls below it."""
    STRUCTURE = "structure"
    """Neither call nor reward nor agent."""
    MALFORMED_SPAN = "malformed_span"
    DUPLICATE_SPAN = "duplicate_span"
    """The same span id again; the richer record was kept."""
    REPEATS_INNER_CALL = "repeats_inner_call"
    INSIDE_A_CALL = "inside_a_call"
    INSIDE_A_REWARD = "inside_a_reward"
    AGENT_NOT_WANTED = "agent_not_wanted"
    FAILED_CALL = "failed_call"
    NO_TOKEN_IDS = "no_token_ids"
    OTHER_NAME = "other_name"
    """`compat` only: a call by its meaning, whose name the pattern does not find."""
    OUTSIDE_THE_TREE = "outside_the_tree"
    """`compat` only: in a cycle, or lost by the repair."""
    CONVERSION_FAILED = "conversion_failed"
    """`compat` only: some span made the whole conversion fail."""
    MALFORMED_REWARD = "malformed_reward"
    REWARD_WITHOUT_CALL = "reward_without_call"
    SUPERSEDED_REWARD = "superseded_reward"
    """A later reward of the same name went to the same call."""


USED = frozenset({Use.CALL, Use.JOINED, Use.REWARD, Use.AGENT})


class Remark(StrEnum):
    """What else is worth knowing; a span can have several."""

    MISSING_PARENT = "missing_parent"
    CYCLE_BROKEN = "cycle_broken"
    PARENT_REPAIRED = "parent_repaired"
    PARENT_AMBIGUOUS = "parent_ambiguous"
    ENDS_BEFORE_START = "ends_before_start"
    TIMES_UNKNOWN = "times_unknown"
    TOKENS_DISAGREE = "tokens_disagree"
    AGENTS_DISAGREE = "agents_disagree"
    """The trace and our own record name different agents."""
    LATE_REPLY = "late_reply"
    """We served it, but it is in no tree."""
    LOGPROBS_MISALIGNED = "logprobs_misaligned"
    LINK_UNRESOLVED = "link_unresolved"
    MATCHED_BY_LINK = "matched_by_link"
    MATCHED_BY_ORDER = "matched_by_order"


@dataclass(slots=True)
class Entry:
    """One line of the report."""

    span_id: str
    name: str
    use: Use = Use.STRUCTURE
    detail: str = ""
    """The id it was joined with, matched to or superseded by; the error text of a malformed one."""
    remarks: list[Remark] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """As printed."""
        return {
            "span_id": self.span_id,
            "name": self.name,
            "used": self.use in USED,
            "as": str(self.use),
            "detail": self.detail,
            "remarks": [str(remark) for remark in self.remarks],
        }


class Report:
    """Entries of the spans of one attempt by span id, and of those that have none to be found by."""

    def __init__(self, named: Iterable[tuple[str, str]]) -> None:
        self._entries = {span_id: Entry(span_id, name) for span_id, name in named}
        self._extra: list[Entry] = []

    def use(self, span_id: str, use: Use, detail: str = "") -> None:
        """Set the outcome of a span."""
        entry = self._entries[span_id]
        entry.use, entry.detail = use, detail

    def use_if_open(self, span_id: str, use: Use, detail: str = "") -> None:
        """Set the outcome of a span that has none yet: what is said of a call stands above all else."""
        if self._entries[span_id].use is Use.STRUCTURE:
            self.use(span_id, use, detail)

    def remark(self, span_id: str, remark: Remark) -> None:
        """Add a remark once."""
        remarks = self._entries[span_id].remarks
        if remark not in remarks:
            remarks.append(remark)

    def add(self, entry: Entry) -> None:
        """An entry beside those of the spans: duplicates and what could not be read."""
        self._extra.append(entry)

    def entries(self) -> list[Entry]:
        """All of them."""
        return [*self._entries.values(), *self._extra]
