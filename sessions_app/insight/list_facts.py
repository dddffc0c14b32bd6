"""What a list of sessions shows and no column holds. One statement for a page of sessions; reads only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db import connection

_FACTS = """
    SELECT s.id, n.leaves, n.roots, r.unconfirmed, e.causes
    FROM unnest(%s::uuid[]) AS s(id),
    LATERAL (SELECT count(*) - count(DISTINCT parent_seq) AS leaves,
                    count(*) FILTER (WHERE parent_seq IS NULL) AS roots
             FROM sessions_app_node WHERE session_id = s.id) n,
    LATERAL (SELECT count(*) AS unconfirmed FROM sessions_app_record
             WHERE session_id = s.id AND state IN ('answered', 'committed')) r,
    LATERAL (SELECT json_object_agg(cause, number ORDER BY number DESC, cause) AS causes FROM (
                SELECT cause, count(*) AS number FROM sessions_app_historyevent
                WHERE session_id = s.id AND kind IN ('fork', 'retry') GROUP BY cause) c) e
"""


@dataclass(frozen=True, slots=True)
class ListFacts:
    """Counts over one session."""

    leaves: int = 0
    """Nodes without children: lineages, raw training rows."""
    roots: int = 0
    unconfirmed: int = 0
    """Replies that no later request contained."""
    fork_causes: Mapping[str, int] = field(default_factory=dict)
    """Forks and retries by cause, most frequent first."""


def load_list_facts(session_ids: Sequence[UUID]) -> dict[UUID, ListFacts]:
    """The facts of each of these sessions."""
    if not session_ids:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_FACTS, [list(session_ids)])
        rows = cursor.fetchall()
    return {
        session_id: ListFacts(leaves, roots, unconfirmed, causes or {})
        for session_id, leaves, roots, unconfirmed, causes in rows
    }
