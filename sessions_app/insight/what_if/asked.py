"""The requests of a session in commit order, as their clients spelled them. Reads only.

Only requests that became nodes can be replayed: of refused ones the messages are not kept.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
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


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that was answered, and what became of it."""

    seq: int
    parent: int | None
    kind: str
    cause: str | None
    identity: bytes
    """What the engine saw at the head."""
    tools: str | None
    template_kwargs: str
    template_fingerprint: str
    tokenizer_fingerprint: str
    prompt_tokens: int
    total_tokens: int
    reused_tokens: int
    completion: Ids
    messages: list[dict[str, Any]]
    """The whole request as spelled. Messages that are repeated are one object."""
    reply: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RawTurn:
    """How a request spelled the history, as its record keeps it."""

    seq: int
    parent: int | None
    leading: str | None
    reply: str | None


def load_asked(session_id: UUID) -> list[Asked]:
    """All of a session's; two statements."""
    with connection.cursor() as cursor:
        cursor.execute(_TURNS, [session_id])
        rows = cursor.fetchall()
    messages = settled(attach.load_messages(ORM, session_id, [row[0] for row in rows]))
    requests = raw_requests([RawTurn(row[0], row[1], *row[-2:]) for row in rows], messages)
    return [_asked(row, *requests[row[0]]) for row in rows]


def _asked(row: Sequence[Any], messages: list[dict[str, Any]], reply: dict[str, Any]) -> Asked:
    seq, parent, kind, cause, identity, tools, kwargs, template, tokenizer, *rest = row
    prompt_tokens, total_tokens, reused_tokens, completion = rest[:4]
    return Asked(
        seq=seq,
        parent=parent,
        kind=kind,
        cause=cause,
        identity=bytes(identity),
        tools=tools,
        template_kwargs=kwargs,
        template_fingerprint=template,
        tokenizer_fingerprint=tokenizer,
        prompt_tokens=prompt_tokens,
        total_tokens=total_tokens,
        reused_tokens=reused_tokens,
        completion=unpack_ids(bytes(completion)),
        messages=messages,
        reply=reply,
    )


def raw_requests(
    turns: Sequence[RawTurn], messages: Iterable[PathMessage]
) -> dict[int, tuple[list[dict[str, Any]], dict[str, Any]]]:
    """Request and reply of each node of a forest, by seq; the turns in commit order."""
    own: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for message in messages:
        own[message.node_seq].append(json.loads(message.body))
    found: dict[int, tuple[list[dict[str, Any]], dict[str, Any]]] = {}
    paths: dict[int | None, list[dict[str, Any]]] = {None: []}
    for turn in turns:
        leading = _leading(turn, found, paths[turn.parent])
        paths[turn.seq] = [*paths[turn.parent], *own[turn.seq]]
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
