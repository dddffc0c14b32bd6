"""Sessions from the database, any number of them with the same few statements. Reads only."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Any, TypeVar
from uuid import UUID

from sessions_app.packing import unpack_ids, unpack_logprobs
from sessions_app.store.pool import Executor, Row
from trainer_export.forests.rows import (
    MessageRow,
    NodeRow,
    RewardRow,
    SessionRow,
    SideRow,
    StoredSession,
)

T = TypeVar("T", NodeRow, RewardRow, SideRow, MessageRow)

_SESSIONS = """
    SELECT s.id, p.name, s.history_policy, s.message_matcher, s.on_truncated, s.healing, s.passthrough,
        s.next_seq, s.active_seq, s.rollout_id, s.group_id, s.attempt_id, s.labels,
        s.finish_status IS NOT NULL, s.finish_metadata, s.finished_at, s.deleted_at IS NOT NULL,
        s.healed_turns, s.healed_prefix_tokens, s.nonlinear, s.close_unresolved
    FROM sessions_app_session s JOIN sessions_app_modelprofile p ON p.id = s.profile_id
    WHERE s.id = ANY(%s)
"""
_NODES = """
    SELECT n.session_id, n.seq, n.parent_seq, n.finish_reason, n.raw_finish_reason, n.weight_version,
        n.weight_version_dispatch, n.committed_at, n.response_id, n.request_key, n.prefix_key,
        n.message_count, n.head_identity, n.head_digest, n.context_digest,
        n.attach_kind, n.cause, n.retry_of, n.root_class, n.agent, n.prompt_tokens, n.total_tokens,
        r.arrived_at, coalesce(r.cached_tokens, 0), r.response, c.boundary_trim, c.prompt_delta, c.completion,
        c.logprobs, c.logprob_width
    FROM sessions_app_node n
    JOIN sessions_app_record r ON r.session_id = n.session_id AND r.id = n.record_id
    JOIN sessions_app_tokencheckpoint c ON c.session_id = n.session_id AND c.node_seq = n.seq
    WHERE n.session_id = ANY(%s) ORDER BY n.session_id, n.seq
"""
_REWARDS = """
    SELECT session_id, node_seq, name, value, weight, source FROM sessions_app_reward
    WHERE session_id = ANY(%s) AND (%s::timestamptz IS NULL OR created_at <= %s) ORDER BY session_id, id
"""
_SIDES = """
    SELECT session_id, node_seq, kind, prefix_bytes + octet_length(payload), start_row
    FROM sessions_app_sidepayload
    WHERE session_id = ANY(%s) ORDER BY session_id, node_seq, kind
"""
_MESSAGES = """
    SELECT session_id, node_seq, generated, body FROM sessions_app_message
    WHERE session_id = ANY(%s) ORDER BY session_id, node_seq, position
"""
_TOOLS = "SELECT session_id, digest, tools FROM sessions_app_requesthead WHERE session_id = ANY(%s)"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to read beyond nodes, tokens, rewards and the riders' sizes."""

    messages: bool = False
    """For drift, and for the ends that un-healed roots continue."""
    tools: bool = False
    rewards_until: Any = None
    """Rewards reported later are left out (a datetime); None = all."""


async def load_sessions(db: Executor, ids: Sequence[UUID], wanted: Wanted) -> list[StoredSession]:
    """The sessions that exist, deleted ones too, in the order asked for."""
    rows = await db.fetch_all(_SESSIONS, (list(ids),))
    sessions = {row[0]: SessionRow(*row) for row in rows}
    return await load_contents(db, [sessions[id] for id in ids if id in sessions], wanted)


async def load_contents(db: Executor, sessions: Sequence[SessionRow], wanted: Wanted) -> list[StoredSession]:
    """What belongs to these sessions. Nodes that were committed after the row was read are left out."""
    ids = [session.id for session in sessions]
    until = wanted.rewards_until
    nodes = await _grouped(db, _NODES, (ids,), _node)
    rewards = await _grouped(db, _REWARDS, (ids, until, until), RewardRow)
    sides = await _grouped(db, _SIDES, (ids,), SideRow)
    messages = await _grouped(db, _MESSAGES if wanted.messages else None, (ids,), MessageRow)
    tools = await _tools(db, ids) if wanted.tools else {}
    return [
        StoredSession(
            session,
            nodes=[node for node in nodes[session.id] if node.seq < session.next_seq],
            rewards=rewards[session.id],
            sides=sides[session.id],
            messages=messages[session.id],
            tools=tools.get(session.id, {}),
        )
        for session in sessions
    ]


async def _grouped(
    db: Executor, query: str | None, parameters: tuple[Any, ...], row_type: Callable[..., T]
) -> defaultdict[UUID, list[T]]:
    rows = await db.fetch_all(query, parameters) if query else []
    return _by_session(starmap(row_type, rows))


def _by_session(rows: Iterable[T]) -> defaultdict[UUID, list[T]]:
    grouped: defaultdict[UUID, list[T]] = defaultdict(list)
    for row in rows:
        grouped[row.session_id].append(row)
    return grouped


def _node(*values: Any) -> NodeRow:
    *row, prompt, completion, logprobs, width = values
    row += [unpack_ids(prompt), unpack_ids(completion), unpack_logprobs(logprobs, width)]
    return NodeRow(*row)


async def _tools(db: Executor, ids: list[UUID]) -> dict[UUID, dict[bytes, str | None]]:
    found: dict[UUID, dict[bytes, str | None]] = {}
    rows: list[Row] = await db.fetch_all(_TOOLS, (ids,))
    for session_id, digest, tools in rows:
        found.setdefault(session_id, {})[digest] = tools
    return found
