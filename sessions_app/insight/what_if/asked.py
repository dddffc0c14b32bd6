"""The requests of a session as their clients spelled them: those that became nodes in commit order, and those
that its policy refused. Reads only.

Of other requests without a node (bad input, failed engines) no messages are kept: no policy would have served
them.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from sessions_app.insight.store_reads import ORM, settled
from sessions_app.packing import Ids, unpack_ids
from sessions_app.store import attach
from sessions_app.store.values import PathMessage
from sessions_app.turns.reading import respelled

_TURNS = """
    SELECT n.seq, n.parent_seq, n.attach_kind, n.cause, n.head_identity, h.tools, h.template_kwargs,
        h.template_fingerprint, h.tokenizer_fingerprint, n.prompt_tokens, n.total_tokens,
        coalesce(r.reused_tokens, 0), c.completion, r.raw_leading, r.raw_reply
    FROM sessions_app_node n
    JOIN sessions_app_record r ON r.session_id = n.session_id AND r.id = n.record_id
    JOIN sessions_app_requesthead h ON h.session_id = n.session_id AND h.digest = n.head_digest
    JOIN sessions_app_tokencheckpoint c ON c.session_id = n.session_id AND c.node_seq = n.seq
    WHERE n.session_id = %s ORDER BY n.seq
"""


_REFUSED = """
    SELECT r.id, r.error_code, r.raw_path, r.raw_leading, r.raw_tail, r.message_count, h.identity, h.tools,
        h.template_kwargs, h.template_fingerprint, h.tokenizer_fingerprint,
        (SELECT e.cause FROM sessions_app_historyevent e
         WHERE e.session_id = r.session_id AND e.record_id = r.id AND e.kind = 'refused' LIMIT 1),
        (SELECT count(*) FROM sessions_app_node n
         WHERE n.session_id = r.session_id AND n.committed_at <= r.finished_at)
    FROM sessions_app_record r
    JOIN sessions_app_requesthead h ON h.session_id = r.session_id AND h.digest = r.head_digest
    WHERE r.session_id = %s AND r.state = 'refused' AND r.raw_path IS NOT NULL AND r.raw_tail IS NOT NULL
    ORDER BY r.id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What decides where a request attaches."""

    cause: str | None
    """Why it attached where it did, or was refused."""
    identity: bytes
    """What the engine saw at the head, or would have seen."""
    tools: str | None
    template_kwargs: str
    template_fingerprint: str
    tokenizer_fingerprint: str
    messages: list[dict[str, Any]]
    """The whole request as spelled. Messages that are repeated are one object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused(Request):
    """One request that the session's policy refused. What would have been answered is not known."""

    record: int
    code: str
    """Of the refusal."""
    after: int
    """Nodes that were there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(Request):
    """One request that was answered, and what became of it."""

    seq: int
    parent: int | None
    kind: str
    prompt_tokens: int
    total_tokens: int
    reused_tokens: int
    completion: Ids
    reply: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RawTurn:
    """How a request spelled the history, as its record keeps it."""

    seq: int
    parent: int | None
    leading: str | None
    reply: str | None


@dataclass(frozen=True, slots=True)
class Requests:
    """Those of a session."""

    asked: list[Asked]
    refused: list[Refused]


def load_requests(session_id: UUID) -> Requests:
    """All of a session's that can be replayed; three statements."""
    with connection.cursor() as cursor:
        cursor.execute(_TURNS, [session_id])
        rows = cursor.fetchall()
        cursor.execute(_REFUSED, [session_id])
        refused = cursor.fetchall()
    messages = settled(attach.load_messages(ORM, session_id, [row[0] for row in rows]))
    turns = [RawTurn(row[0], row[1], *row[-2:]) for row in rows]
    own = _own_messages(messages)
    requests, paths = raw_requests(turns, own), stored_paths(turns, own)
    return Requests(
        [_asked(row, *requests[row[0]]) for row in rows],
        [_refused(row, paths[row[2]]) for row in refused if row[2] in paths],
    )


def _refused(row: Sequence[Any], path: list[dict[str, Any]]) -> Refused:
    record, code, _path, leading, tail, count, *head = row[:-2]
    cause, after = row[-2:]
    messages = [*respelled(path, leading)[:count], *json.loads(tail)]
    return Refused(record=record, code=code, after=after, cause=cause, messages=messages, **_head(*head))


def _asked(row: Sequence[Any], messages: list[dict[str, Any]], reply: dict[str, Any]) -> Asked:
    seq, parent, kind, cause, *head = row[:9]
    prompt_tokens, total_tokens, reused_tokens, completion = row[9:13]
    return Asked(
        seq=seq,
        parent=parent,
        kind=kind,
        cause=cause,
        prompt_tokens=prompt_tokens,
        total_tokens=total_tokens,
        reused_tokens=reused_tokens,
        completion=unpack_ids(bytes(completion)),
        messages=messages,
        reply=reply,
        **_head(*head),
    )


def _head(
    identity: bytes | memoryview, tools: str | None, kwargs: str, template: str, tokenizer: str
) -> dict[str, Any]:
    """The fields of a request that its head says."""
    return {
        "identity": bytes(identity),
        "tools": tools,
        "template_kwargs": kwargs,
        "template_fingerprint": template,
        "tokenizer_fingerprint": tokenizer,
    }


Own = Mapping[int, list[dict[str, Any]]]
"""Messages that each node added, by seq."""


def _own_messages(messages: Iterable[PathMessage]) -> Own:
    own: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for message in messages:
        own[message.node_seq].append(json.loads(message.body))
    return own


def stored_paths(turns: Sequence[RawTurn], own: Own) -> dict[int | None, list[dict[str, Any]]]:
    """The stored messages of the path to each node, by seq; the turns in commit order."""
    paths: dict[int | None, list[dict[str, Any]]] = {None: []}
    for turn in turns:
        paths[turn.seq] = [*paths[turn.parent], *own[turn.seq]]
    return paths


def raw_requests(
    turns: Sequence[RawTurn], own: Own
) -> dict[int, tuple[list[dict[str, Any]], dict[str, Any]]]:
    """Request and reply of each node of a forest, by seq; the turns in commit order."""
    paths = stored_paths(turns, own)
    found: dict[int, tuple[list[dict[str, Any]], dict[str, Any]]] = {}
    for turn in turns:
        leading = _leading(turn, found, paths[turn.parent])
        *asked, reply = own[turn.seq]
        found[turn.seq] = ([*leading, *asked], reply)
    return found


def _leading(
    turn: RawTurn,
    found: dict[int, tuple[list[dict[str, Any]], dict[str, Any]]],
    stored: list[dict[str, Any]],
) -> list[dict[str, Any]]:
    """The matched messages as this request spelled them. `stored`: of its attach point's path."""
    if turn.leading is not None:
        return respelled(stored, turn.leading)
    if turn.parent is None:
        return []
    messages, reply = found[turn.parent]
    return [*messages, reply if turn.reply is None else json.loads(turn.reply)]
