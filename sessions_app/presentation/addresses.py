"""Stable addresses of the operator screens. Sessions and nodes are named by what they are, never by row
numbers.
"""

from urllib.parse import urlencode
from uuid import UUID

from django.urls import reverse


def session_url(session_id: UUID) -> str:
    """The page of a session."""
    return reverse("admin:sessions_app_session_change", args=[session_id.hex])


def node_url(session_id: UUID, seq: int) -> str:
    """The page of a node."""
    return reverse("admin:tito_node", args=[session_id.hex, seq])


def diff_url(session_id: UUID, seq: int) -> str:
    """The lanes of a node's path."""
    return reverse("admin:tito_diff", args=[session_id.hex, seq])


def many_url(action: str, session_ids: str) -> str:
    """The question about several sessions, their ids with commas between them."""
    return reverse("admin:tito_do_many", args=[action]) + f"?ids={session_ids}"


def rewards_url(session_id: UUID) -> str:
    """The rewards of a session and what they reached."""
    return reverse("admin:tito_rewards", args=[session_id.hex])


def what_if_url(job_id: UUID) -> str:
    """The report of a replay."""
    return reverse("admin:tito_replay", args=[job_id.hex])


def record_url(record_id: int) -> str:
    """The page of a record."""
    return reverse("admin:sessions_app_record_change", args=[record_id])


def list_url(model: str, **filters: object) -> str:
    """A list of rows under filters."""
    return reverse(f"admin:sessions_app_{model}_changelist") + (f"?{urlencode(filters)}" if filters else "")
