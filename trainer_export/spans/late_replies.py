"""Replies that are in no tree, as calls that spans can name: clients got them, and may have acted on them.

Found among the replies of one session, for their ids stand in no index. A client of OpenAI Responses is told
an id that leads nowhere for such a reply.
"""

import json
from collections.abc import Mapping, Sequence, Set
from datetime import datetime
from uuid import UUID

import numpy as np

from sessions_app.packing import Ids, unpack_ids, unpack_logprobs
from sessions_app.response_names import stored_ids
from sessions_app.store.pool import Executor, Row
from trainer_export.spans.own_calls import OwnCall

_LATE = """
    SELECT r.id, r.response, r.reason, r.parent_seq, coalesce(r.reused_tokens, 0), r.arrived_at,
        r.finished_at, u.prompt, u.completion, u.logprobs, u.logprob_width
    FROM sessions_app_unattachedreply u
    JOIN sessions_app_record r ON r.session_id = u.session_id AND r.id = u.record_id
    WHERE u.session_id = %(session)s AND r.response IS NOT NULL AND r.finished_at IS NOT NULL
      AND (%(until)s::timestamptz IS NULL OR r.finished_at <= %(until)s)
    ORDER BY r.id
"""


async def late_replies(
    db: Executor, session_id: UUID, own: Sequence[OwnCall], told: Set[str], until: datetime | None
) -> dict[str, OwnCall]:
    """The late replies of a session by those of the ids asked for that name one."""
    if not told:
        return {}
    rows = await db.fetch_all(_LATE, {"session": session_id, "until": until})
    nodes = {call.seq: call for call in own}
    calls = {call.response_id: call for row in rows if (call := _call(session_id, row, nodes)) is not None}
    return {text: calls[one] for text in told for one in stored_ids(text) if one in calls}


def _call(session_id: UUID, row: Row, nodes: Mapping[int, OwnCall]) -> OwnCall | None:
    """None where the reply has no id, or where what it was generated from is not there."""
    record, response, reason, parent, reused, arrived_at, finished_at, prompt, completion, logprobs, width = (
        row
    )
    response_id = _id_of(response)
    before = _before(nodes.get(parent) if parent is not None else None, reused)
    if response_id is None or before is None:
        return None
    return OwnCall(
        session_id=session_id.hex,
        seq=-record,
        response_id=response_id,
        prompt=np.concatenate([before, unpack_ids(prompt)]),
        completion=unpack_ids(completion),
        logprobs=unpack_logprobs(logprobs, width),
        agent=None,
        finish_reason="",
        arrived_at=arrived_at,
        committed_at=finished_at,
        messages=(),
        late=reason or "late",
    )


def _before(parent: OwnCall | None, reused: int) -> Ids | None:
    """The ids of the attach point that were fed again."""
    ids = np.zeros(0, np.int32) if parent is None else np.concatenate([parent.prompt, parent.completion])
    return ids[:reused] if len(ids) >= reused else None


def _id_of(response: str) -> str | None:
    try:
        reply = json.loads(response)
    except ValueError:
        return None
    told = reply.get("id") if isinstance(reply, dict) else None
    return told if isinstance(told, str) and told else None
