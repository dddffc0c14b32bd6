"""Reads that decide where a request attaches: session state, candidate nodes, messages and tokens of a
path.

Append-only turns need one statement of this module, and a second one only where the parent's token array
is not cached in this process.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from sessions_app.packing import EMPTY_IDS, Ids, unpack_ids
from sessions_app.store.pool import Executor, Row
from sessions_app.store.values import AttachRow, Head, NodeRow, PathMessage, SessionState

_STATE = """
    s.status, s.version, s.next_seq, s.active_seq, s.passthrough, s.keyless, p.weight_version, p.paused,
    (SELECT r.worker FROM sessions_app_record r
     WHERE r.session_id = s.id AND r.node_seq = s.active_seq) AS worker
"""
_NODE_COLUMNS = (
    "seq, parent_seq, root_seq, depth, message_start, message_count, prefix_key, raw_digest, head_digest, "
    "head_identity, context_digest, finish_reason, prompt_tokens, total_tokens, response_id, "
    "model_name, adapter_name"
)
_NODE_WIDTH = len(_NODE_COLUMNS.split(","))
_STATE_WIDTH = 9


def node_columns(alias: str) -> str:
    """The select list of a NodeRow."""
    return ", ".join(f"{alias}.{column.strip()}" for column in _NODE_COLUMNS.split(","))


_REPLY = """
    (SELECT m.body FROM sessions_app_message m
     WHERE m.session_id = n.session_id AND m.node_seq = n.seq ORDER BY m.position DESC LIMIT 1) AS reply_body
"""
_HAS_CHILDREN = """
    EXISTS (SELECT 1 FROM sessions_app_node c
            WHERE c.session_id = n.session_id AND c.parent_seq = n.seq) AS has_children
"""

_DEEPEST = f"""
    SELECT {_STATE}, a.*
    FROM sessions_app_session s
    JOIN sessions_app_modelprofile p ON p.id = s.profile_id
    LEFT JOIN LATERAL (
        SELECT {node_columns("n")}, {_REPLY}, {_HAS_CHILDREN}
        FROM sessions_app_node n
        WHERE n.session_id = s.id AND n.prefix_key = ANY(%(keys)s)
          AND (%(identity)s::bytea IS NULL OR n.head_identity = %(identity)s)
        ORDER BY array_position(%(keys)s::bytea[], n.prefix_key) DESC, n.seq DESC LIMIT 1
    ) a ON true
    WHERE s.id = %(session)s AND s.deleted_at IS NULL
"""

_ACTIVE = f"""
    SELECT {_STATE}, a.*
    FROM sessions_app_session s
    JOIN sessions_app_modelprofile p ON p.id = s.profile_id
    LEFT JOIN LATERAL (
        SELECT {node_columns("n")}, {_REPLY}, {_HAS_CHILDREN}
        FROM sessions_app_node n WHERE n.session_id = s.id AND n.seq = s.active_seq
    ) a ON true
    WHERE s.id = %(session)s AND s.deleted_at IS NULL
"""

_PATH = """
    WITH RECURSIVE path AS (
        SELECT seq, parent_seq FROM sessions_app_node WHERE session_id = %(session)s AND seq = %(seq)s
        UNION ALL
        SELECT n.seq, n.parent_seq FROM sessions_app_node n
        JOIN path ON n.session_id = %(session)s AND n.seq = path.parent_seq
    )
"""


@dataclass(frozen=True, slots=True)
class Lookup:
    """A session's state and the node found with it."""

    state: SessionState
    found: AttachRow | None


def node_from(row: Row) -> NodeRow:
    """The leading columns of a row selected with `node_columns`."""
    return NodeRow(*row[:_NODE_WIDTH])


def _attach_from(row: Row) -> AttachRow | None:
    if row[0] is None:
        return None
    return AttachRow(node_from(row), row[_NODE_WIDTH], row[_NODE_WIDTH + 1])


def _lookup_from(row: Row | None) -> Lookup | None:
    if row is None:
        return None
    return Lookup(SessionState(*row[:_STATE_WIDTH]), _attach_from(row[_STATE_WIDTH:]))


async def load_deepest(
    db: Executor, session_id: UUID, keys: Sequence[bytes], identity: bytes | None
) -> Lookup | None:
    """State, and the deepest node whose path has one of these keys, the shortest first (later commits win
    ties).

    identity: only nodes of this head; None = of any. None when the session is unknown or deleted.
    """
    return _lookup_from(
        await db.fetch_one(_DEEPEST, {"session": session_id, "keys": list(keys), "identity": identity})
    )


async def load_active(db: Executor, session_id: UUID) -> Lookup | None:
    """State, and the last node of the active path."""
    return _lookup_from(await db.fetch_one(_ACTIVE, {"session": session_id}))


async def load_attach(db: Executor, session_id: UUID, seq: int) -> AttachRow | None:
    """One node as an attach point."""
    row = await db.fetch_one(
        f"SELECT {node_columns('n')}, {_REPLY}, {_HAS_CHILDREN} FROM sessions_app_node n "
        "WHERE n.session_id = %s AND n.seq = %s",
        (session_id, seq),
    )
    return _attach_from(row) if row else None


async def load_twin(db: Executor, session_id: UUID, node: NodeRow, raw_digest: bytes) -> AttachRow | None:
    """Of the nodes with the path and head of this one the latest whose request was spelled like that."""
    row = await db.fetch_one(
        f"SELECT {node_columns('n')}, {_REPLY}, {_HAS_CHILDREN} FROM sessions_app_node n "
        "WHERE n.session_id = %s AND n.prefix_key = %s AND n.head_identity IS NOT DISTINCT FROM %s "
        "AND n.raw_digest = %s ORDER BY n.seq DESC LIMIT 1",
        (session_id, node.prefix_key, node.head_identity, raw_digest),
    )
    return _attach_from(row) if row else None


async def load_path(db: Executor, session_id: UUID, seq: int) -> list[NodeRow]:
    """Nodes from the root to `seq`."""
    rows = await db.fetch_all(
        _PATH + f"SELECT {node_columns('n')} FROM path JOIN sessions_app_node n "
        "ON n.session_id = %(session)s AND n.seq = path.seq ORDER BY n.seq",
        {"session": session_id, "seq": seq},
    )
    return [node_from(row) for row in rows]


async def load_nodes(db: Executor, session_id: UUID) -> list[NodeRow]:
    """The whole forest in commit order."""
    rows = await db.fetch_all(
        f"SELECT {node_columns('n')} FROM sessions_app_node n WHERE n.session_id = %s ORDER BY n.seq",
        (session_id,),
    )
    return [node_from(row) for row in rows]


async def load_newest_children(
    db: Executor, session_id: UUID, parent_seq: int | None, limit: int
) -> list[NodeRow]:
    """The latest children of a node, newest first; of None: the roots."""
    below = "n.parent_seq IS NULL" if parent_seq is None else "n.parent_seq = %(parent)s"
    rows = await db.fetch_all(
        f"SELECT {node_columns('n')} FROM sessions_app_node n "
        f"WHERE n.session_id = %(session)s AND {below} ORDER BY n.seq DESC LIMIT %(limit)s",
        {"session": session_id, "parent": parent_seq, "limit": limit},
    )
    return [node_from(row) for row in rows]


async def load_retried(db: Executor, session_id: UUID, request_key: bytes, identity: bytes) -> NodeRow | None:
    """The latest node that answers the same request: same messages, tools and head."""
    row = await db.fetch_one(
        f"SELECT {node_columns('n')} FROM sessions_app_node n WHERE n.session_id = %s AND n.request_key = %s "
        "AND n.head_identity = %s ORDER BY n.seq DESC LIMIT 1",
        (session_id, request_key, identity),
    )
    return node_from(row) if row else None


async def load_messages(db: Executor, session_id: UUID, seqs: Sequence[int]) -> list[PathMessage]:
    """Messages that these nodes added, by node and position."""
    rows = await db.fetch_all(
        "SELECT node_seq, position, body, generated FROM sessions_app_message "
        "WHERE session_id = %s AND node_seq = ANY(%s) ORDER BY node_seq, position",
        (session_id, list(seqs)),
    )
    return [PathMessage(*row) for row in rows]


async def load_path_messages(db: Executor, session_id: UUID, seq: int) -> list[PathMessage]:
    """Messages of a whole path in order."""
    rows = await db.fetch_all(
        _PATH + "SELECT m.node_seq, m.position, m.body, m.generated, m.sidecar "
        "FROM path JOIN sessions_app_message m "
        "ON m.session_id = %(session)s AND m.node_seq = path.seq ORDER BY m.node_seq, m.position",
        {"session": session_id, "seq": seq},
    )
    return [PathMessage(*row) for row in rows]


async def load_tokens(db: Executor, session_id: UUID, seq: int) -> Ids:
    """Every id fed and sampled up to and including a node: int32, shape (total_tokens,), read-only."""
    rows = await db.fetch_all(
        _PATH + "SELECT c.boundary_trim, c.prompt_delta, c.completion "
        "FROM path JOIN sessions_app_tokencheckpoint c "
        "ON c.session_id = %(session)s AND c.node_seq = path.seq ORDER BY c.node_seq",
        {"session": session_id, "seq": seq},
    )
    return join_deltas(
        [(trim, unpack_ids(prompt), unpack_ids(completion)) for trim, prompt, completion in rows]
    )


def join_deltas(deltas: Sequence[tuple[int, Ids, Ids]]) -> Ids:
    """Token deltas (trim, prompt delta, completion) of a path, root first, as one read-only array."""
    pieces: list[Ids] = []
    for trim, prompt, completion in deltas:
        _drop_last(pieces, trim)
        pieces += [prompt, completion]
    tokens = np.concatenate(pieces) if pieces else EMPTY_IDS
    tokens.setflags(write=False)
    return tokens


def _drop_last(pieces: list[Ids], count: int) -> None:
    while count and pieces:
        kept = max(0, len(pieces[-1]) - count)
        count -= len(pieces[-1]) - kept
        pieces[-1] = pieces[-1][:kept]
        if not kept:
            pieces.pop()


async def load_newest_leaf(db: Executor, session_id: UUID, seq: int) -> int:
    """The leaf reached from a node by always taking the latest child."""
    row = await db.fetch_one(
        """
        WITH RECURSIVE down AS (
            SELECT %(seq)s::int AS seq
            UNION ALL
            SELECT child.seq FROM down, LATERAL (
                SELECT n.seq FROM sessions_app_node n
                WHERE n.session_id = %(session)s AND n.parent_seq = down.seq ORDER BY n.seq DESC LIMIT 1
            ) child
        ) SELECT max(seq) FROM down
        """,
        {"session": session_id, "seq": seq},
    )
    return row[0] if row else seq


async def load_head(db: Executor, session_id: UUID, digest: bytes) -> Head | None:
    """A stored request head."""
    row = await db.fetch_one(
        "SELECT digest, identity, tools, template_kwargs, template_fingerprint, tokenizer_fingerprint "
        "FROM sessions_app_requesthead WHERE session_id = %s AND digest = %s",
        (session_id, digest),
    )
    return Head(*row) if row else None
