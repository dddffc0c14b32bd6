"""Where a request attaches: loads what the session's policy needs to know and lets the policy decide.

Reads only. A plain append costs one statement, whatever the length of the history; the walk message by
message is left to matchers and messages that have no key.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from sessions_app.errors import SessionClosed, SessionNotFound
from sessions_app.history.causes import AttachKind
from sessions_app.history.chain import prefix_keys
from sessions_app.history.harness.matcher import HarnessMatcher
from sessions_app.history.matchers.base import Message, MessageMatcher
from sessions_app.history.passing import counted, passing, steady
from sessions_app.history.policies import (
    Checkpoint,
    Position,
    position_linear,
    position_rollback,
    position_tree,
)
from sessions_app.history.walk import PathNode, behind, match_length, walk
from sessions_app.store import attach
from sessions_app.store.attach import Lookup
from sessions_app.store.pool import Executor
from sessions_app.store.values import AttachRow, NodeRow, PathMessage, SessionSettings, SessionState

_NEWEST = 16
"""Candidate prefixes tried first; the deepest match is nearly always among the last few."""
NEVER_A_REPLY = ("user", "system", "developer", "tool")
"""Roles whose prefixes are not looked up. A reply of such a role gets no key, so that it is walked to."""


@dataclass(frozen=True, slots=True)
class History:
    """A request's messages under the session's matcher."""

    messages: Sequence[Message]
    matcher: MessageMatcher
    keys: Sequence[bytes | None]
    """Chained key of each prefix; None from the first message without a key."""

    @classmethod
    def of(cls, messages: Sequence[Message], matcher: MessageMatcher) -> "History":
        """The history with its keys."""
        return cls(messages, matcher, prefix_keys(matcher, messages))

    @property
    def keyed(self) -> bool:
        """Every prefix has a key."""
        return not self.keys or self.keys[-1] is not None

    @property
    def request_key(self) -> bytes | None:
        """The key of the whole request."""
        return self.keys[-1] if self.keys else None

    def repeats(self, node: NodeRow) -> bool:
        """Whether the request begins with a node's whole path. Only for keyed histories and nodes."""
        return self.reached(node) is not None

    def reached(self, node: NodeRow) -> int | None:
        """Messages of the request that replay a node's whole path; None where it does not, or has no key."""
        key, last = node.prefix_key, node.message_count - 1
        if key is None:
            return None
        if last < len(self.keys) and self.keys[last] == key and self.keys[last - 1] != key:
            return last + 1
        return self.keys.index(key) + 1 if key in self.keys else None

    def candidates(self) -> list[bytes]:
        """Keys of the prefixes that may end with a reply, shortest first."""
        pairs = zip(self.keys, self.messages, strict=True)
        return [key for key, message in pairs if key is not None and message.get("role") not in NEVER_A_REPLY]


@dataclass(frozen=True, slots=True)
class Attachment:
    """A decided attach point, with what it was decided on."""

    state: SessionState
    parent: AttachRow | None
    kind: AttachKind
    active: NodeRow | None
    """The active path's last node, where the policy looked at it."""
    discarded: int = 0
    matched: int = 0
    """Messages of the request that replay the parent's path."""

    @property
    def first_new(self) -> int:
        """Index of the first message that the parent's path does not hold."""
        return self.matched if self.parent else 0

    @property
    def plain(self) -> bool:
        """An append, or the first turn of an empty session: nothing to explain."""
        return self.kind in (AttachKind.APPEND, AttachKind.ROOT)


async def position(
    db: Executor, settings: SessionSettings, history: History, identity: bytes | None, *, max_rollback: int
) -> Attachment:
    """The attach point of a request. `identity`: what the engine would see at its head.

    Raises SessionNotFound and SessionClosed before all else, RollbackTooDeep, NonlinearHistory, and what a
    matcher raises.
    """
    if settings.history_policy == "rollback":
        attachment = await _rollback(db, settings, history, max_rollback)
    elif settings.history_policy == "linear":
        attachment = await _linear(db, settings, history, identity)
    else:
        attachment = await _tree(db, settings, history, identity)
    if attachment.parent is None:
        return attachment
    matched = await _reached(db, settings.id, history, attachment.parent.node)
    return replace(attachment, matched=matched)


async def _reached(db: Executor, session_id: UUID, history: History, node: NodeRow) -> int:
    """Messages of a request that replay the path it was attached to."""
    reached = history.reached(node)
    if reached is not None or passing(history.matcher) is None:
        return node.message_count if reached is None else reached
    stored = await _path_messages(db, session_id, node.seq)
    told = steady(history.messages, history.matcher)
    return behind(told, len(steady(stored, history.matcher)))


async def as_spelled(
    db: Executor, session_id: UUID, history: History, attachment: Attachment, told: Callable[[int], bytes]
) -> Attachment:
    """Of nodes that are one to a harness profile, the latest whose request was spelled as this one repeats
    it: it holds what the client sent. `told`: digest of so many leading messages. For policy `tree`.
    """
    parent, matcher = attachment.parent, history.matcher
    keyed = history.keyed and not attachment.state.keyless
    if parent is None or not keyed or not isinstance(matcher, HarnessMatcher):
        return attachment
    digest = told(attachment.first_new - 1)
    twin = None
    if digest != parent.node.raw_digest:
        twin = await attach.load_twin(db, session_id, parent.node, digest)
    if twin is None:
        return attachment
    return replace(attachment, parent=twin, kind=AttachKind.FORK if twin.has_children else AttachKind.APPEND)


async def _tree(
    db: Executor, settings: SessionSettings, history: History, identity: bytes | None
) -> Attachment:
    lookup = await deepest(db, settings.id, history, identity)
    if lookup.state.keyless or not history.keyed:
        found = await _walked(db, settings.id, history, identity)
    else:
        found = lookup.found
    decided = position_tree(
        _checkpoint(found.node) if found else None,
        has_children=found is not None and found.has_children,
        forest_size=lookup.state.next_seq,
    )
    return Attachment(lookup.state, found, decided.kind, active=None)


async def deepest(db: Executor, session_id: UUID, history: History, identity: bytes | None) -> Lookup:
    """The session's state and the deepest node whose whole path the request repeats."""
    keys = history.candidates()
    newest = keys[-_NEWEST:]
    lookup = _open(await attach.load_deepest(db, session_id, newest, identity), session_id)
    if lookup.found is None and len(keys) > len(newest):
        lookup = _open(await attach.load_deepest(db, session_id, keys, identity), session_id)
    return lookup


async def _walked(
    db: Executor, session_id: UUID, history: History, identity: bytes | None
) -> AttachRow | None:
    nodes = [
        node
        for node in await attach.load_nodes(db, session_id)
        if identity is None or node.head_identity == identity
    ]
    messages = await attach.load_messages(db, session_id, [node.seq for node in nodes])
    deltas = _by_node(messages)
    forest = [PathNode(node.seq, node.parent_seq, deltas[node.seq]) for node in nodes]
    found = walk(forest, history.messages, history.matcher)
    return await attach.load_attach(db, session_id, found.seq) if found.seq is not None else None


def _by_node(messages: Sequence[PathMessage]) -> dict[int, list[dict[str, Any]]]:
    deltas: dict[int, list[dict[str, Any]]] = {}
    for message in messages:
        deltas.setdefault(message.node_seq, []).append(json.loads(message.body))
    return deltas


async def _rollback(
    db: Executor, settings: SessionSettings, history: History, max_rollback: int
) -> Attachment:
    lookup = _open(await attach.load_active(db, settings.id), settings.id)
    state, active = lookup.state, lookup.found
    if active is None:
        return Attachment(state, None, AttachKind.ROOT, active=None)
    keyed = history.keyed and not state.keyless
    if keyed and history.repeats(active.node):
        return Attachment(state, active, AttachKind.APPEND, active.node)
    path = await attach.load_path(db, settings.id, active.node.seq)
    matched = (
        max((node.message_count for node in path if history.repeats(node)), default=0)
        if keyed
        else await _matched_messages(db, settings.id, active.node.seq, history)
    )
    decided = position_rollback(
        [_checkpoint(node) for node in path],
        matched=matched,
        requested=len(history.messages),
        max_discard=max_rollback,
    )
    return await _attached(db, settings.id, state, decided, active)


async def _matched_messages(db: Executor, session_id: UUID, seq: int, history: History) -> int:
    """Leading messages of a path that a request repeats."""
    stored, matcher = await _path_messages(db, session_id, seq), history.matcher
    length = match_length(counted(stored, matcher), counted(history.messages, matcher), matcher)
    return behind(steady(stored, matcher), length)


async def _path_messages(db: Executor, session_id: UUID, seq: int) -> list[dict[str, Any]]:
    return [json.loads(message.body) for message in await attach.load_path_messages(db, session_id, seq)]


async def _linear(
    db: Executor, settings: SessionSettings, history: History, identity: bytes | None
) -> Attachment:
    lookup = _open(await attach.load_active(db, settings.id), settings.id)
    state, active = lookup.state, lookup.found
    if state.passthrough:
        return await _tree(db, settings, history, None)
    decided = position_linear(
        _checkpoint(active.node) if active else None,
        extends=active is not None
        and active.node.head_identity == identity
        and await _extends(db, settings.id, history, state, active.node),
        on_nonlinear=settings.on_nonlinear,
        session_id=settings.id.hex,
    )
    return await _attached(db, settings.id, state, decided, active)


async def _extends(
    db: Executor, session_id: UUID, history: History, state: SessionState, active: NodeRow
) -> bool:
    if history.keyed and not state.keyless:
        return history.repeats(active)
    return await _matched_messages(db, session_id, active.seq, history) >= active.message_count


async def _attached(
    db: Executor, session_id: UUID, state: SessionState, decided: Position, active: AttachRow | None
) -> Attachment:
    parent: AttachRow | None = None
    if active is not None and decided.attach == active.node.seq:
        parent = active
    elif decided.attach is not None:
        parent = await attach.load_attach(db, session_id, decided.attach)
    return Attachment(state, parent, decided.kind, active.node if active else None, decided.discarded)


def _open(lookup: Lookup | None, session_id: UUID) -> Lookup:
    """What was found, of a session that still serves turns."""
    if lookup is None:
        raise SessionNotFound(session_id.hex)
    if lookup.state.status != "open":
        raise SessionClosed(f"session is {lookup.state.status}: it no longer serves turns")
    return lookup


def _checkpoint(node: NodeRow) -> Checkpoint:
    return Checkpoint(node.seq, node.depth, node.message_count)
