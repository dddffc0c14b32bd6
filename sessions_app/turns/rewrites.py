"""Events of what a harness profile tolerated in a matched history.

Invariant: looks only where the client's spelling is new. A history spelled as in the matched node's own
request was reported then; what is fed is the stored spelling in every case.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from uuid import UUID

from sessions_app.history.causes import Cause
from sessions_app.history.harness.matcher import HarnessMatcher, Rewrite, passed, tolerated
from sessions_app.history.matchers.base import Message
from sessions_app.history.passing import aligned
from sessions_app.store import attach
from sessions_app.store.pool import Executor
from sessions_app.store.values import NewEvent
from sessions_app.turns.positioning import Attachment, History
from sessions_app.turns.recording import RawDelta


async def rewrite_events(
    db: Executor, session_id: UUID, history: History, attachment: Attachment, raw: RawDelta
) -> list[NewEvent]:
    """One event for each matched message that only the profile accepts, and for each that came or went."""
    parent, matcher = attachment.parent, history.matcher
    if parent is None or not isinstance(matcher, HarnessMatcher):
        return []
    told = history.messages[: attachment.first_new]
    pairs: list[tuple[Message | None, Message | None]]
    if raw.base:
        pairs = [(json.loads(parent.reply_body), told[-1])] if raw.reply is not None else []
        return list(_events(_rewrites(pairs, len(told) - 1, matcher), matcher, parent.node.seq))
    loaded = await attach.load_path_messages(db, session_id, parent.node.seq)
    stored = [json.loads(message.body) for message in loaded]
    pairs = [(_at(stored, ours), _at(told, theirs)) for ours, theirs in aligned(stored, told, matcher)]
    return list(_events(_rewrites(pairs, 0, matcher), matcher, parent.node.seq))


def _at(messages: Sequence[Message], index: int | None) -> Message | None:
    return None if index is None else messages[index]


def _rewrites(
    pairs: Iterable[tuple[Message | None, Message | None]], start: int, matcher: HarnessMatcher
) -> Iterator[Rewrite]:
    """What was tolerated of pairs that begin at a place of the request."""
    index = start
    for stored, replayed in pairs:
        if stored is None or replayed is None:
            yield passed(index, stored, replayed, matcher)
        elif (rewrite := tolerated(index, stored, replayed, matcher)) is not None:
            yield rewrite
        index += replayed is not None


def _events(rewrites: Iterable[Rewrite], matcher: HarnessMatcher, seq: int) -> Iterator[NewEvent]:
    for rewrite in rewrites:
        yield NewEvent(
            "rewrite",
            Cause.HARNESS_REWRITE,
            compared_seq=seq,
            message_index=rewrite.difference.index,
            field=rewrite.difference.path,
            stored_value=rewrite.difference.stored,
            replayed_value=rewrite.difference.replayed,
            char_offset=rewrite.difference.offset,
            matcher=matcher.name,
            detail=", ".join(rewrite.rules),
        )
