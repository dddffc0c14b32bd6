"""The label of a new root, and what it says about why the turn attached nowhere."""

from collections.abc import Sequence
from dataclasses import replace

from sessions_app.history.causes import Cause
from sessions_app.history.roots import BY_ITS_OWN_WORDS, RootLabel, label_root
from sessions_app.store.pool import Executor
from sessions_app.store.roots import load_earlier, load_root_of
from sessions_app.store.values import NewEvent, SessionSettings
from sessions_app.turns.positioning import Attachment
from sessions_app.turns.values import ChatRequest

_REFINED = (Cause.UNRELATED_HISTORY, Cause.MESSAGE_EDITED)
"""Causes that a label may say better; an edited message only where a new summary stands in its place."""


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
    if label.cause is Cause.COMPACTION and cause is Cause.MESSAGE_EDITED and _opens_anew(request, events):
        return label
    origin = await load_root_of(db, settings.id, compared)
    return label if origin is None else _variant(label, origin[0], origin[1], cause)


def _opens_anew(request: ChatRequest, events: Sequence[NewEvent]) -> bool:
    """Whether it is the first user's message that differs: a new summary, before messages that were kept."""
    opening = next((at for at, each in enumerate(request.messages) if each.get("role") == "user"), None)
    return any(event.message_index == opening for event in events)


def _variant(label: RootLabel, seq: int, root_class: str | None, cause: Cause | None) -> RootLabel:
    """A conversation told anew with a change is what it was, unless it says itself that it is not."""
    if label.evidence == BY_ITS_OWN_WORDS:
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
