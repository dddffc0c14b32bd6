"""Commit: a validated reply becomes a node, in one statement; or it is kept beside the tree with its
reason.

The fast road is one statement that applies only at the version the turn was prepared at. Where the session
moved on meanwhile, its row is locked and the turn is looked at again: `rollback` keeps the reply as late,
the other policies commit a sibling with cause `concurrent`. A connection lost during commit is retried;
the statement cannot apply twice.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sessions_app.history.causes import AttachKind, Cause
from sessions_app.history.chain import chain
from sessions_app.history.context import ROOT, context_digest
from sessions_app.history.harness.detection import detect_harness
from sessions_app.history.roots import agent_of, system_text
from sessions_app.json_text import storable, text_of
from sessions_app.store import attach, commit, side
from sessions_app.store.commit import LateReason, LockedSession, Unattached
from sessions_app.store.pool import LOST_CONNECTION, Database, Transaction
from sessions_app.store.values import NewEvent, NewMessage, NewNode, Reply
from sessions_app.turns import recording
from sessions_app.turns.explaining import in_force
from sessions_app.turns.positioning import NEVER_A_REPLY
from sessions_app.turns.prepare import Prepared
from sessions_app.turns.reasons import text_field
from sessions_app.turns.turnstile import Turnstile

logger = logging.getLogger(__name__)

_PATIENCE_S = 60.0
"""How long a reply is held while the database is away, before the client is told."""


_LATE_CAUSES = {
    LateReason.CONCURRENT: Cause.CONCURRENT,
    LateReason.NODE_LIMIT: Cause.NODE_LIMIT,
}


@dataclass(frozen=True, slots=True)
class Committed:
    """What became of a reply."""

    seq: int | None
    kind: AttachKind
    cause: Cause | None
    late: LateReason | None = None


async def commit_turn(
    db: Database,
    turnstile: Turnstile,
    prepared: Prepared,
    record_id: int,
    message: Mapping[str, Any],
    reply: Reply,
) -> Committed:
    """Store a reply. Raises what the database raises when it stays away."""
    node = new_node(prepared, record_id, message, reply)
    deadline = time.monotonic() + _PATIENCE_S
    delay = 0.05
    while True:
        try:
            async with turnstile.only(node.session_id, deadline - time.monotonic()):
                return await _commit(db, prepared, node)
        except LOST_CONNECTION:
            if time.monotonic() + delay > deadline:
                raise
            logger.warning("database away while committing record %s; trying again", record_id)
            await asyncio.sleep(delay)
            delay = min(delay * 2, 2.0)


async def _lean(db: Database, node: NewNode) -> NewNode:
    """The node without the replay rows that its parent holds."""
    if not node.reply.side:
        return node
    parent = node.parent.seq if node.parent else None
    rest = await side.beyond_parent(db, node.session_id, parent, node.reply.side)
    return replace(node, reply=replace(node.reply, side=rest))


async def _commit(db: Database, prepared: Prepared, node: NewNode) -> Committed:
    lean = await _lean(db, node)
    seq = await commit.commit_node(db, lean)
    if seq is not None:
        return Committed(seq, AttachKind(node.attach_kind), _cause(node.cause))
    async with db.transaction() as transaction:
        return await _commit_moved(transaction, prepared, node, lean)


async def _commit_moved(
    transaction: Transaction, prepared: Prepared, node: NewNode, lean: NewNode
) -> Committed:
    """The session is not as it was at prepare: decide again, with its row locked."""
    locked = await commit.lock_session(transaction, node.session_id, node.record_id)
    if locked is not None and locked.record_node is not None:
        return Committed(locked.record_node, AttachKind(node.attach_kind), _cause(node.cause))
    reason = _late(locked, prepared)
    if locked is not None and reason is None:
        beside = await _beside(transaction, prepared, lean, locked)
        seq = await commit.commit_node(transaction, beside)
        if seq is not None:
            return Committed(seq, AttachKind(beside.attach_kind), _cause(beside.cause))
    reason = reason or LateReason.LOST_INTENT  # given up since the session was locked
    cause = _LATE_CAUSES.get(reason, Cause.LATE_REPLY)
    await commit.keep_unattached(transaction, unattached(prepared, node.record_id, node.reply, reason, cause))
    return Committed(None, AttachKind(node.attach_kind), cause, reason)


def _late(locked: LockedSession | None, prepared: Prepared) -> LateReason | None:
    if locked is None or locked.deleted:
        return LateReason.SESSION_DELETED
    if locked.record_state != "intent":
        return LateReason.LOST_INTENT
    if not locked.open:
        return LateReason.SESSION_CLOSED
    if prepared.settings.history_policy == "rollback":
        return LateReason.CONCURRENT
    most = prepared.settings.max_turns
    if most is not None and locked.next_seq >= most:
        return LateReason.MAX_TURNS
    if locked.next_seq >= prepared.max_nodes:
        return LateReason.NODE_LIMIT
    return None


def unattached(
    prepared: Prepared, record_id: int, reply: Reply, reason: LateReason, cause: Cause | None
) -> Unattached:
    """A prepared turn's reply in the form in which it is kept beside the tree."""
    parent, prompt = prepared.parent_node, prepared.prompt
    return Unattached(
        session_id=prepared.settings.id,
        record_id=record_id,
        parent_seq=parent.seq if parent else None,
        reused=len(prompt.ids) - len(prompt.delta),
        prompt=prompt.delta,
        reply=reply,
        reason=reason,
        cause=cause,
    )


async def _beside(
    transaction: Transaction, prepared: Prepared, node: NewNode, locked: LockedSession
) -> NewNode:
    """The node at the version now: still an append if nobody continued its parent, else a concurrent
    sibling.
    """
    node = replace(node, expected_version=locked.version)
    if node.attach_kind not in (AttachKind.APPEND, AttachKind.ROOT):
        return node
    parent = node.parent.seq if node.parent else None
    if not await attach.load_newest_children(transaction, node.session_id, parent, 1):
        return node
    event = in_force(NewEvent("fork", Cause.CONCURRENT, compared_seq=locked.active_seq), prepared.history)
    return replace(
        node,
        attach_kind=AttachKind.FORK,
        cause=Cause.CONCURRENT,
        events=(*node.events, event),
        counters=replace(node.counters, forks=1),
    )


def new_node(prepared: Prepared, record_id: int, message: Mapping[str, Any], reply: Reply) -> NewNode:
    """The node a reply would become."""
    request, parent = prepared.request, prepared.parent_node
    request_key = prepared.history.request_key
    reply_key = None if message.get("role") in NEVER_A_REPLY else prepared.history.matcher.key(message)
    prefix_key = None if request_key is None or reply_key is None else chain(request_key, reply_key)
    parent_digest = parent.context_digest if parent else ROOT
    return NewNode(
        session_id=prepared.settings.id,
        record_id=record_id,
        expected_version=prepared.state.version,
        parent=parent,
        attach_kind=prepared.kind,
        cause=prepared.cause,
        retry_of=prepared.retry_of,
        messages=_messages(prepared, message),
        prefix_key=prefix_key,
        request_key=request_key,
        raw_digest=prepared.raw.digest,
        head=prepared.head,
        context_digest=context_digest(
            parent_digest, prepared.prompt.trim, prepared.prompt.delta, reply.completion
        ),
        boundary_trim=prepared.prompt.trim,
        glue_tokens=prepared.prompt.glue,
        prompt_delta=prepared.prompt.delta,
        prompt_tokens=len(prepared.prompt.ids),
        weight_version_dispatch=prepared.state.weight_version,
        model_name=text_field(request, "model"),
        adapter_name=text_field(request, "lora_path"),
        reply=reply,
        events=(*prepared.events, *_reply_events(prepared, prefix_key, reply)),
        counters=prepared.counters,
        passthrough=prepared.passthrough,
        root_class=prepared.root.root_class if prepared.root else None,
        root_evidence=prepared.root.evidence if prepared.root else None,
        agent=agent_of(system_text(request.messages), request.arrival.headers),
        harness=detect_harness(request.arrival.headers),
        client_params=recording.own_params(request, prepared.raw),
    )


def _messages(prepared: Prepared, message: Mapping[str, Any]) -> tuple[NewMessage, ...]:
    request = prepared.request
    new = [
        NewMessage(
            _role(request.messages[index]), request.texts.text(index), False, request.sidecars.get(index)
        )
        for index in range(prepared.first_new, len(request.messages))
    ]
    return (*new, NewMessage(_role(message), text_of(message), True))


def _role(message: Mapping[str, Any]) -> str:
    role = message.get("role")
    return storable(role)[:40] if isinstance(role, str) else ""


def _reply_events(prepared: Prepared, prefix_key: bytes | None, reply: Reply) -> list[NewEvent]:
    events = []
    if prefix_key is not None and prefix_key == prepared.retried_key:
        events.append(NewEvent("notice", Cause.TWIN, compared_seq=prepared.retry_of))
    if reply.ill_formed:
        events.append(NewEvent("notice", Cause.ILL_FORMED))
    return [in_force(event, prepared.history) for event in events]


def _cause(cause: str | None) -> Cause | None:
    return Cause(cause) if cause is not None else None
