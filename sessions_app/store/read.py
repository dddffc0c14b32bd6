"""Whole paths and the shape of a forest, for GET, samples and replayed replies. Reads only."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sessions_app.packing import Ids, Logprobs, unpack_ids, unpack_logprobs
from sessions_app.store.attach import _NODE_WIDTH, node_columns, node_from
from sessions_app.store.pool import Executor, Row
from sessions_app.store.values import TurnRow

_TURN = f"""
    SELECT {node_columns("n")}, n.attach_kind, n.cause, n.retry_of, n.raw_finish_reason, n.ill_formed,
        n.weight_version, n.committed_at, r.id, r.arrived_at, r.path, r.request_params, r.raw_base,
        r.raw_reply, r.raw_leading,
        h.tools, r.response, coalesce(r.cached_tokens, 0),
        c.boundary_trim, c.prompt_delta, c.completion, c.logprobs, c.logprob_width, c.logprob_texts
    FROM sessions_app_node n
    JOIN sessions_app_record r ON r.session_id = n.session_id AND r.id = n.record_id
    JOIN sessions_app_requesthead h ON h.session_id = n.session_id AND h.digest = n.head_digest
    JOIN sessions_app_tokencheckpoint c ON c.session_id = n.session_id AND c.node_seq = n.seq
"""


def _turn_from(row: Row) -> TurnRow:
    (
        attach_kind, cause, retry_of, raw_finish, ill_formed, weight_version, committed_at, record_id,
        arrived_at,
        path, request_params, raw_base, raw_reply, raw_leading, tools, response, cached, trim, prompt,
        completion, logprobs,
        width, texts,
    ) = row[_NODE_WIDTH:]  # fmt: skip
    return TurnRow(
        node=node_from(row),
        attach_kind=attach_kind,
        cause=cause,
        retry_of=retry_of,
        raw_finish_reason=raw_finish,
        ill_formed=ill_formed,
        weight_version=weight_version,
        committed_at=committed_at,
        record_id=record_id,
        arrived_at=arrived_at,
        path=path,
        request_params=request_params,
        raw_base=raw_base,
        raw_reply=raw_reply,
        raw_leading=raw_leading,
        tools=tools,
        response=response,
        cached_tokens=cached,
        boundary_trim=trim,
        prompt_delta=unpack_ids(prompt),
        completion=unpack_ids(completion),
        logprobs=unpack_logprobs(logprobs, width),
        logprob_texts=texts,
    )


async def load_turns(db: Executor, session_id: UUID, seq: int) -> list[TurnRow]:
    """The turns of the path that ends at a node, root first."""
    rows = await db.fetch_all(
        "WITH RECURSIVE path AS ("
        "SELECT seq, parent_seq FROM sessions_app_node WHERE session_id = %(session)s AND seq = %(seq)s "
        "UNION ALL SELECT n.seq, n.parent_seq FROM sessions_app_node n "
        "JOIN path ON n.session_id = %(session)s AND n.seq = path.parent_seq) "
        + _TURN
        + " JOIN path ON path.seq = n.seq WHERE n.session_id = %(session)s ORDER BY n.seq",
        {"session": session_id, "seq": seq},
    )
    return [_turn_from(row) for row in rows]


async def load_turn(db: Executor, session_id: UUID, seq: int) -> TurnRow | None:
    """One turn."""
    row = await db.fetch_one(_TURN + " WHERE n.session_id = %s AND n.seq = %s", (session_id, seq))
    return _turn_from(row) if row else None


@dataclass(frozen=True, slots=True)
class Asked:
    """What a committed turn's request said beside its messages."""

    protocol: str
    client_params: str | None
    tools: str | None
    """As the engine was offered them."""


async def load_asked(db: Executor, session_id: UUID, seq: int) -> Asked:
    """The request of a node that exists."""
    row = await db.fetch_one(
        "SELECT r.protocol, r.client_params, h.tools FROM sessions_app_node n "
        "JOIN sessions_app_record r ON r.session_id = n.session_id AND r.id = n.record_id "
        "JOIN sessions_app_requesthead h ON h.session_id = n.session_id AND h.digest = n.head_digest "
        "WHERE n.session_id = %s AND n.seq = %s",
        (session_id, seq),
    )
    assert row is not None
    return Asked(*row)


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A node as the tree of GET shows it."""

    seq: int
    parent_seq: int | None
    finish_reason: str
    committed_at: datetime
    prompt_tokens: int
    total_tokens: int
    response_id: str | None


async def load_tree(db: Executor, session_id: UUID) -> list[TreeNode]:
    """Every node in commit order."""
    rows = await db.fetch_all(
        "SELECT seq, parent_seq, finish_reason, committed_at, prompt_tokens, total_tokens, response_id "
        "FROM sessions_app_node WHERE session_id = %s ORDER BY seq",
        (session_id,),
    )
    return [TreeNode(*row) for row in rows]


@dataclass(frozen=True, slots=True)
class Healer:
    """The four healer counters of a session."""

    healed_turns: int
    healed_prefix_tokens: int
    nonlinear: int
    close_unresolved: int


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """What GET needs of the session row."""

    history_policy: str
    status: str
    active_seq: int | None
    healer: Healer


async def load_summary(db: Executor, session_id: UUID) -> SessionSummary | None:
    """The session row of a session that is not deleted."""
    row = await db.fetch_one(
        "SELECT history_policy, status, active_seq, "
        "healed_turns, healed_prefix_tokens, nonlinear, close_unresolved "
        "FROM sessions_app_session WHERE id = %s AND deleted_at IS NULL",
        (session_id,),
    )
    return SessionSummary(row[0], row[1], row[2], Healer(*row[3:])) if row else None


@dataclass(frozen=True, slots=True)
class LateRow:
    """A generated reply that is in no tree."""

    response: str
    completion: Ids
    logprobs: Logprobs
    logprob_texts: str | None
    prompt: Ids
    """Ids fed beyond the attach point."""
    parent_seq: int | None
    reused: int
    """Ids of the attach point that were fed before them."""
    reason: str


async def load_late(db: Executor, session_id: UUID, record_id: int) -> LateRow | None:
    """The reply of a record that was kept beside the tree."""
    row = await db.fetch_one(
        "SELECT r.response, u.completion, u.logprobs, u.logprob_width, u.logprob_texts, u.prompt, "
        "r.parent_seq, coalesce(r.reused_tokens, 0), r.reason "
        "FROM sessions_app_record r JOIN sessions_app_unattachedreply u "
        "ON u.session_id = r.session_id AND u.record_id = r.id WHERE r.session_id = %s AND r.id = %s",
        (session_id, record_id),
    )
    if row is None:
        return None
    response, completion, logprobs, width, texts, prompt, parent_seq, reused, reason = row
    return LateRow(
        response=response,
        completion=unpack_ids(completion),
        logprobs=unpack_logprobs(logprobs, width),
        logprob_texts=texts,
        prompt=unpack_ids(prompt),
        parent_seq=parent_seq,
        reused=reused,
        reason=reason,
    )
