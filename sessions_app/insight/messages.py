"""Stored messages of a node and of its path. Reads only."""

from dataclasses import dataclass
from uuid import UUID

from django.db import connection

from sessions_app.insight.paths import PATH
from sessions_app.models import Message

_WHOLE = (
    PATH
    + """
    SELECT m.node_seq, m.position, m.role, m.generated, m.body
    FROM path JOIN sessions_app_message m ON m.session_id = %(session)s AND m.node_seq = path.seq
    ORDER BY m.position
    """
)
_HEADS = (
    PATH
    + """
    SELECT m.node_seq, m.position, m.role, m.generated, left(m.body, %(width)s)
    FROM path JOIN sessions_app_message m ON m.session_id = %(session)s AND m.node_seq = path.seq
    WHERE m.position < %(stop)s ORDER BY m.position DESC LIMIT %(most)s
    """
)


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One message as stored."""

    node: int
    position: int
    role: str
    generated: bool
    body: str
    """JSON text; of `load_above` its beginning."""
    sidecar: str | None = None


def load_own(session_id: UUID, seq: int) -> list[StoredMessage]:
    """What a node added, its reply last."""
    rows = Message.objects.filter(session=session_id, node_seq=seq).order_by("position")
    return [
        StoredMessage(*row)
        for row in rows.values_list("node_seq", "position", "role", "generated", "body", "sidecar")
    ]


def load_above(session_id: UUID, seq: int, stop: int, *, most: int, width: int) -> list[StoredMessage]:
    """The last messages of a path before position `stop`, each cut to `width` characters, in path order."""
    with connection.cursor() as cursor:
        cursor.execute(
            _HEADS, {"session": session_id, "seq": seq, "stop": stop, "most": most, "width": width}
        )
        return [StoredMessage(*row) for row in reversed(cursor.fetchall())]


def load_path_messages(session_id: UUID, seq: int) -> list[StoredMessage]:
    """Every message of a path."""
    with connection.cursor() as cursor:
        cursor.execute(_WHOLE, {"session": session_id, "seq": seq})
        return [StoredMessage(*row) for row in cursor.fetchall()]
