"""The label of a new root, and what it says about why the turn attached nowhere."""

import json
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from sessions_app.history.causes import Cause
from sessions_app.history.roots import (
    BY_ITS_OWN_WORDS,
    BY_ITS_PROMPT,
    SUMS_UP,
    RootLabel,
    label_root,
    summary_of,
)
from sessions_app.store import attach
from sessions_app.store.pool import Executor
from sessions_app.store.roots import load_earlier, load_root_of
from sessions_app.store.values import NewEvent, SessionSettings
from sessions_app.turns.positioning import Attachment
from sessions_app.turns.values import ChatRequest

_REFINED = frozenset({
    Cause.UNRELATED_HISTORY, Cause.MESSAGE_EDITED, Cause.MESSAGE_INSERTED, Cause.MESSAGE_REMOVED,
    Cause.ASSISTANT_EDITED,
})  # fmt: skip
"""Causes that a label may say better; all but the first only of a conversation that begins with a summary."""


async def root_label(
    db: Executor,
    settings: SessionSettings,
    request: ChatRequest,
    attachment: Attachment,
    cause: Cause | None,
    events: Sequence[NewEvent],
) -> RootLabel | None:
    """What a new root is taken for; None for a turn that continues a node."""
    if attachment.parent is not None:
        return None
    earlier = await load_earlier(db, settings.id) if attachment.state.next_seq else []
    label = label_root(request.messages, request.body, request.arrival.headers, earlier)
    compared = next((event.compared_seq for event in events if event.compared_seq is not None), None)
    if cause in (None, Cause.UNRELATED_HISTORY) or compared is None:
        return label
    if cause in _REFINED and await _goes_on_from(db, settings.id, request, label, compared):
        return label
    origin = await load_root_of(db, settings.id, compared)
    if origin is None:
        return replace(label, cause=None)
    return _variant(label, origin[0], origin[1], cause)


async def _goes_on_from(
    db: Executor, session_id: UUID, request: ChatRequest, label: RootLabel, compared: int
) -> bool:
    """Whether a conversation begins with a summary that the path it came closest to does not have."""
    summary = summary_of(request.messages) if label.cause is Cause.COMPACTION else None
    if summary is None:
        return False
    stored = await attach.load_path_messages(db, session_id, compared)
    return summary_of([json.loads(message.body) for message in stored]) != summary


def _variant(label: RootLabel, seq: int, root_class: str | None, cause: Cause | None) -> RootLabel:
    """A conversation told anew with a change is what it was, unless it says itself that it is not."""
    if label.evidence in (BY_ITS_OWN_WORDS, BY_ITS_PROMPT, SUMS_UP):
        return replace(label, cause=None)
    evidence = f"a variant of root {seq} ({cause})"
    return replace(label, root_class=root_class or label.root_class, evidence=evidence, cause=None)


def refined(
    label: RootLabel | None, cause: Cause | None, events: Sequence[NewEvent]
) -> tuple[Cause | None, tuple[NewEvent, ...]]:
    """An unrelated history by its better name; a compaction names the root it goes on from."""
    if label is None or label.cause is None or cause not in _REFINED:
        return cause, tuple(events)
    told = (_retold(event, label, label.cause) if event.cause == cause else event for event in events)
    return label.cause, tuple(told)


def _retold(event: NewEvent, label: RootLabel, cause: Cause) -> NewEvent:
    compared = event.compared_seq if label.continues is None else label.continues
    return replace(event, cause=cause, detail=label.evidence, compared_seq=compared)
