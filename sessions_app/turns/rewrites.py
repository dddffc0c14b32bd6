"""Events of what a harness profile tolerated in a matched history.

Invariant: looks only where the client's spelling is new. A history spelled as in the matched node's own
request was reported then; what is fed is the stored spelling in every case.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from sessions_app.history.causes import Cause
from sessions_app.history.harness.matcher import HarnessMatcher, tolerated
from sessions_app.store import attach
from sessions_app.store.pool import Executor
from sessions_app.store.values import AttachRow, NewEvent
from sessions_app.turns.positioning import History
from sessions_app.turns.recording import RawDelta


async def rewrite_events(
    db: Executor, session_id: UUID, history: History, parent: AttachRow | None, raw: RawDelta
) -> list[NewEvent]:
    """One event for each matched message that only the profile accepts."""
    if parent is None or not isinstance(history.matcher, HarnessMatcher):
        return []
    count = parent.node.message_count
    if raw.base:
        pairs = [(count - 1, json.loads(parent.reply_body))] if raw.reply is not None else []
    else:
        stored = await attach.load_path_messages(db, session_id, parent.node.seq)
        pairs = list(enumerate(json.loads(message.body) for message in stored))
    return list(_events(pairs, history.matcher, history, parent.node.seq))


def _events(
    pairs: Sequence[tuple[int, Any]], matcher: HarnessMatcher, history: History, seq: int
) -> Iterator[NewEvent]:
    for index, stored in pairs:
        rewrite = tolerated(index, stored, history.messages[index], matcher)
        if rewrite is None:
            continue
        yield NewEvent(
            "rewrite",
            Cause.HARNESS_REWRITE,
            compared_seq=seq,
            message_index=index,
            field=rewrite.difference.path,
            stored_value=rewrite.difference.stored,
            replayed_value=rewrite.difference.replayed,
            char_offset=rewrite.difference.offset,
            matcher=matcher.name,
            detail=", ".join(rewrite.rules),
        )
