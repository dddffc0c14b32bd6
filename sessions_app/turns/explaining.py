"""Why a turn was no plain append: its cause, and the first difference that made it so.

Runs only where something is to be explained, so it may load what an append never needs: the stored path
that the request came closest to.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import orjson

from sessions_app.errors import (
    NodeLimit,
    NonlinearHistory,
    NotAppendOnly,
    RoleNotAppendable,
    RollbackTooDeep,
    TitoError,
    TruncatedGeneration,
)
from sessions_app.history.causes import AttachKind, Cause
from sessions_app.history.classify import classify
from sessions_app.history.differences import VALUE_BYTES, first_difference, looser_matcher
from sessions_app.history.nearness import nearness
from sessions_app.history.passing import counted, steady
from sessions_app.history.walk import match_length
from sessions_app.rendering.protocol import RendererRefused
from sessions_app.store import attach
from sessions_app.store.pool import Executor
from sessions_app.store.values import Head, NewEvent, NodeRow
from sessions_app.turns.positioning import Attachment, History, deepest

_REFUSED_FOR: dict[type[TitoError], Cause] = {
    NodeLimit: Cause.NODE_LIMIT,
    NotAppendOnly: Cause.TEMPLATE_NOT_APPEND_ONLY,
    RoleNotAppendable: Cause.ROLE_NOT_APPENDABLE,
    TruncatedGeneration: Cause.TRUNCATED_PARENT,
}
_COMPARED = 32
"""Siblings looked at for the closest one, newest first."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The cause of an attachment, and the event that records it."""

    cause: Cause
    event: NewEvent
    retry_of: int | None = None
    """Node whose request was sent again."""
    retried_key: bytes | None = None
    """Prefix key of that node: an equal one makes the new node its twin."""


@dataclass(frozen=True, slots=True)
class Closest:
    """The stored path that a request came closest to."""

    node: NodeRow
    leaf_seq: int
    messages: list[dict[str, Any]]


async def explain(
    db: Executor, session_id: UUID, history: History, attachment: Attachment, head: Head
) -> Explanation:
    """Why a request attached as it did. For attachments that are not plain."""
    kind = attachment.kind
    retried = await _retried(db, session_id, history, attachment, head)
    if retried is not None:
        event = await _retry_event(db, session_id, history, kind, retried)
        return Explanation(Cause.RETRY, event, retried.seq, retried.prefix_key)
    other_head = await _other_head(db, session_id, history, attachment, head)
    if other_head is not None:
        return await _head_changed(db, session_id, kind, other_head, head)
    closest = await find_closest(db, session_id, history, attachment)
    if closest is None:
        cause = Cause.UNRELATED_HISTORY
        return Explanation(cause, NewEvent(kind=_event_kind(kind, cause), cause=cause))
    return await _differs(db, session_id, history, kind, closest, head)


async def _retried(
    db: Executor, session_id: UUID, history: History, attachment: Attachment, head: Head
) -> NodeRow | None:
    """The node whose request this is, if it stands where this one would."""
    if history.request_key is None:
        return None
    node = await attach.load_retried(db, session_id, history.request_key, head.identity)
    parent = attachment.parent.node.seq if attachment.parent else None
    linear = attachment.active is not None
    return node if node is not None and (linear or node.parent_seq == parent) else None


async def _retry_event(
    db: Executor, session_id: UUID, history: History, kind: AttachKind, retried: NodeRow
) -> NewEvent:
    """The request ends where the stored reply stands: that is what differs."""
    event = NewEvent(_event_kind(kind, Cause.RETRY), Cause.RETRY, compared_seq=retried.seq)
    messages = await attach.load_messages(db, session_id, [retried.seq])
    difference = first_difference([json.loads(one.body) for one in messages[-1:]], [], history.matcher)
    if difference is None:
        return event
    index = len(history.messages)
    return replace(event, message_index=index, field=difference.path, stored_value=difference.stored)


async def _other_head(
    db: Executor, session_id: UUID, history: History, attachment: Attachment, head: Head
) -> NodeRow | None:
    """A deeper match under another head: what the request would have continued, had the head not changed."""
    active = attachment.active
    if active is not None:
        same_messages = history.keyed and history.repeats(active)
        return active if same_messages and active.head_identity != head.identity else None
    found = (await deepest(db, session_id, history, None)).found
    if found is None or found.node.head_identity == head.identity:
        return None
    reached = history.reached(found.node) or 0
    return found.node if reached > attachment.first_new else None


async def _head_changed(
    db: Executor, session_id: UUID, kind: AttachKind, node: NodeRow, head: Head
) -> Explanation:
    cause, before, after = await head_difference(db, session_id, node, head)
    event = NewEvent(
        kind=_event_kind(kind, cause),
        cause=cause,
        compared_seq=node.seq,
        field="tools" if cause is Cause.TOOLS_CHANGED else "chat_template_kwargs",
        stored_value=before,
        replayed_value=after,
    )
    return Explanation(cause, event)


async def head_difference(
    db: Executor, session_id: UUID, node: NodeRow, head: Head
) -> tuple[Cause, str | None, str | None]:
    """Which part of the head changed since a node, and both spellings cut to VALUE_BYTES."""
    stored = await attach.load_head(db, session_id, node.head_digest)
    assert stored is not None  # a foreign key holds it
    if stored.tokenizer_fingerprint != head.tokenizer_fingerprint:
        return Cause.TOKENIZER_CHANGED, stored.tokenizer_fingerprint, head.tokenizer_fingerprint
    if stored.template_fingerprint != head.template_fingerprint:
        return Cause.TEMPLATE_CHANGED, stored.template_fingerprint, head.template_fingerprint
    if _canonical(stored.tools) != _canonical(head.tools):
        return Cause.TOOLS_CHANGED, _cut(stored.tools), _cut(head.tools)
    return Cause.TEMPLATE_KWARGS_CHANGED, _cut(stored.template_kwargs), _cut(head.template_kwargs)


async def changed_head(db: Executor, session_id: UUID, head: Head) -> Cause | None:
    """What of the head differs from the active path's; None where nothing does."""
    lookup = await attach.load_active(db, session_id)
    if lookup is None or lookup.found is None or lookup.found.node.head_identity == head.identity:
        return None
    return (await head_difference(db, session_id, lookup.found.node, head))[0]


async def find_closest(
    db: Executor, session_id: UUID, history: History, attachment: Attachment
) -> Closest | None:
    """The path that a request comes nearest to: the active one, or one beside the attach point."""
    if attachment.active is not None:
        node = attachment.active
        return Closest(node, node.seq, await _path_messages(db, session_id, node.seq))
    parent = attachment.parent.node if attachment.parent else None
    siblings = await attach.load_newest_children(db, session_id, parent.seq if parent else None, _COMPARED)
    if not siblings:
        return None
    node = await _closest_of(db, session_id, siblings, history, attachment.first_new)
    leaf = await attach.load_newest_leaf(db, session_id, node.seq)
    return Closest(node, leaf, await _path_messages(db, session_id, leaf))


async def _closest_of(
    db: Executor, session_id: UUID, siblings: Sequence[NodeRow], history: History, offset: int
) -> NodeRow:
    deltas: dict[int, list[dict[str, Any]]] = {node.seq: [] for node in siblings}
    for message in await attach.load_messages(db, session_id, list(deltas)):
        deltas[message.node_seq].append(json.loads(message.body))
    matcher = history.matcher
    suffix = counted(history.messages[offset:], matcher)
    told = {seq: counted(delta, matcher) for seq, delta in deltas.items()}
    return max(siblings, key=lambda node: (nearness(told[node.seq], suffix, matcher), node.seq))


async def _path_messages(db: Executor, session_id: UUID, seq: int) -> list[dict[str, Any]]:
    return [json.loads(message.body) for message in await attach.load_path_messages(db, session_id, seq)]


async def _differs(
    db: Executor, session_id: UUID, history: History, kind: AttachKind, closest: Closest, head: Head
) -> Explanation:
    cause, _ = _classified(history, closest)
    if cause is Cause.RETRY and closest.node.head_identity != head.identity:
        return await _head_changed(db, session_id, kind, closest.node, head)
    event = difference_event(_event_kind(kind, cause), cause, history, closest)
    retry_of = closest.node.seq if cause is Cause.RETRY else None
    return Explanation(cause, event, retry_of, closest.node.prefix_key if retry_of is not None else None)


def _classified(history: History, closest: Closest) -> tuple[Cause, bool]:
    """Why a request does not continue a path, and whether it repeats all of it."""
    matcher = history.matcher
    stored, replayed = counted(closest.messages, matcher), counted(history.messages, matcher)
    matched = match_length(stored, replayed, matcher)
    return classify(stored, replayed, matcher, matched), matched == len(stored)


async def explain_refusal(
    db: Executor, session_id: UUID, history: History, error: TitoError
) -> list[NewEvent]:
    """The event of a refused extension: why the request could not continue. [] where none is due."""
    events = await _refusal_events(db, session_id, history, error)
    return [in_force(event, history) for event in events]


async def _refusal_events(
    db: Executor, session_id: UUID, history: History, error: TitoError
) -> list[NewEvent]:
    if isinstance(error.__cause__, RendererRefused):
        return [NewEvent("refused", Cause(error.__cause__.cause), detail=str(error.__cause__))]
    cause = _REFUSED_FOR.get(type(error))
    if cause is not None:
        return [NewEvent("refused", cause, detail=str(error))]
    if not isinstance(error, RollbackTooDeep | NonlinearHistory):
        return []
    lookup = await attach.load_active(db, session_id)
    if lookup is None or lookup.found is None:
        return []
    node = lookup.found.node
    closest = Closest(node, node.seq, await _path_messages(db, session_id, node.seq))
    cause, whole = _classified(history, closest)
    if whole:
        changed = error.cause if isinstance(error, NonlinearHistory) else None
        cause = Cause(changed) if changed else Cause.CONCURRENT  # the path has moved since it was refused
    return [replace(difference_event("refused", cause, history, closest), detail=str(error))]


def in_force(event: NewEvent, history: History) -> NewEvent:
    """The event with the matcher that decided."""
    return event if event.matcher else replace(event, matcher=history.matcher.name)


def difference_event(kind: str, cause: Cause, history: History, closest: Closest) -> NewEvent:
    """The event of a first difference."""
    event = NewEvent(kind=kind, cause=cause, compared_seq=closest.leaf_seq, matcher=history.matcher.name)
    matcher = history.matcher
    stored, replayed = counted(closest.messages, matcher), counted(history.messages, matcher)
    difference = first_difference(stored, replayed, matcher)
    if difference is None:
        return event
    looser = None
    if difference.index < min(len(stored), len(replayed)):
        pair = stored[difference.index], replayed[difference.index]
        looser = looser_matcher(*pair, matcher.name)
    places = [*steady(history.messages, matcher), len(history.messages)]
    return replace(
        event,
        message_index=places[difference.index],
        field=difference.path,
        stored_value=difference.stored,
        replayed_value=difference.replayed,
        char_offset=difference.offset,
        looser_matcher=looser,
    )


def _event_kind(kind: AttachKind, cause: Cause) -> str:
    if kind is AttachKind.FORK and cause is Cause.RETRY:
        return "retry"
    return str(kind)


def _canonical(tools: str | None) -> bytes | None:
    if tools is None:
        return None
    value = json.loads(tools)
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        return json.dumps(value, sort_keys=True).encode()


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= VALUE_BYTES else text[: VALUE_BYTES - 1] + "…"
