"""Ids of responses as protocols tell them, and as nodes keep them.

A client of OpenAI Chat sees the engine's own id, one of Anthropic Messages the same behind `msg_`, and one of
OpenAI Responses an id that names session and node. Whoever holds such an id (a span, a reward) finds the node
by it. Pure.
"""

import re
from dataclasses import dataclass
from uuid import UUID

_NODE = re.compile(r"resp_([0-9a-f]{32})([0-9a-f]{8})\Z")
_MESSAGE = "msg_"
_CHAT = "chatcmpl-"


@dataclass(frozen=True, slots=True)
class NamedNode:
    """A node named by session and seq."""

    session_id: UUID
    seq: int


def node_named(told: str) -> NamedNode | None:
    """The node that a Responses id names; None for every other id."""
    found = _NODE.match(told)
    return NamedNode(UUID(found[1]), int(found[2], 16)) if found else None


def stored_ids(told: str) -> tuple[str, ...]:
    """What a node may keep as its response id if a client was told this one."""
    if not told.startswith(_MESSAGE):
        return (told,)
    bare = told.removeprefix(_MESSAGE)
    return (told, bare, _CHAT + bare)
