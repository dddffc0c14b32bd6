"""Ids of responses: the node a response stands for can be read off its id, so nothing need be looked up."""

import re
from uuid import UUID, uuid4

from sessions_app.turns.values import TurnResult

_ID = re.compile(r"resp_([0-9a-f]{32})([0-9a-f]{8})\Z")


def response_id(result: TurnResult) -> str:
    """The id of a result. A reply that was attached nowhere cannot be continued, and its id leads nowhere."""
    if result.node_seq is None:
        return f"resp_{uuid4().hex}"
    return id_of_node(result.session_id, result.node_seq)


def id_of_node(session_id: UUID, seq: int) -> str:
    """The id of the response that a node stands for."""
    return f"resp_{session_id.hex}{seq:08x}"


def node_of(text: object) -> tuple[UUID, int] | None:
    """Session and node of a response's id; None for an id that was never given."""
    found = _ID.match(text) if isinstance(text, str) else None
    return (UUID(found[1]), int(found[2], 16)) if found else None
