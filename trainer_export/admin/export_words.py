"""What is checked of an export, and why something was left out, in words."""

from collections.abc import Mapping

from sessions_app.presentation.words import MASK_REASONS

CHECKS: Mapping[str, str] = {
    "complete": "Every shard is written; the manifest, which is written last, says so.",
    "exactly_once": "Every sampled id is trained in one row, or masked for one reason: "
    "sampled = trained + masked.",
    "same_prefix": "Every trained id was sampled behind the very ids that stand before it in its row; "
    "those that could not be proven are masked, by what was missing.",
    "sampled_only": "No id is trained that no model sampled, whatever a hook wanted.",
}

_DROPPED: Mapping[str, str] = {
    "no_records": "The session has no committed turn.",
    "all_truncated": "No leaf of it gave a row.",
    "failed": "Assembly or a hook refused; see the failures.",
    "purged": "Retention had removed it.",
    "earlier_attempt": "A later attempt of the same rollout has spans.",
}


TABLES: Mapping[str, str] = {
    "masked": "Sampled ids that no row trains",
    "dropped_nodes": "Nodes that stand in no row",
    "dropped_leaves": "Leaves without a row",
    "dropped_sessions": "Sessions without a row",
    "statuses": "Rows by status",
}
"""Counters of a report as tables."""


def reason_in_words(reason: str) -> str:
    """Why a session, a leaf or a node stands in no row."""
    if reason.startswith("filtered_"):
        return f"A filter of the export left it out: {reason.removeprefix('filtered_')}."
    return _DROPPED.get(reason) or MASK_REASONS.get(reason, reason)
