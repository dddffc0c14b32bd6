"""The causes and events of a prepared turn: why it attached where it did, and what else changed."""

import json
from dataclasses import dataclass, replace

from sessions_app.history.causes import AttachKind, Cause
from sessions_app.json_text import storable
from sessions_app.store.pool import Database
from sessions_app.store.values import Head, NewEvent, NodeRow, SessionSettings
from sessions_app.turns import explaining
from sessions_app.turns.feeding import Fed, Feeding
from sessions_app.turns.positioning import Attachment, History
from sessions_app.turns.values import ChatRequest


@dataclass(frozen=True, slots=True)
class Why:
    """The cause of an attachment and its events."""

    cause: Cause | None
    events: tuple[NewEvent, ...]
    retry_of: int | None = None
    retried_key: bytes | None = None


class Reasons:
    """Finds them; loads only where there is something to explain."""

    def __init__(self, db: Database, feeding: Feeding) -> None:
        self._db = db
        self._feeding = feeding

    async def why(
        self,
        settings: SessionSettings,
        history: History,
        head: Head,
        fed: Fed,
    ) -> Why:
        """Why a turn attached as it did; nothing is loaded for a plain append."""
        attachment, refused = fed.attachment, fed.refused
        if refused is not None:
            cause = Cause(refused.cause)
            event = NewEvent(str(attachment.kind), cause, detail=str(refused))
            return Why(cause, (event,))
        if attachment.plain:
            return Why(Cause.FIRST_TURN if attachment.kind is AttachKind.ROOT else None, ())
        found = await explaining.explain(self._db, settings.id, history, attachment, head)
        event = found.event
        if event.compared_seq is not None:
            index = await self._feeding.first_difference(settings, event.compared_seq, fed.prompt.ids)
            event = replace(event, token_index=index)
        if attachment.discarded:
            event = replace(event, detail=f"{attachment.discarded} checkpoint(s) left the active path")
        return Why(found.cause, (event,), found.retry_of, found.retried_key)

    async def notices(
        self, settings: SessionSettings, request: ChatRequest, head: Head, attachment: Attachment
    ) -> list[NewEvent]:
        """Changes that are recorded and do not fork: model, adapter, and what else `rollback` accepts."""
        if attachment.parent is None:
            return []
        node = attachment.parent.node
        notices = []
        for cause, before, after in (
            (Cause.MODEL_CHANGED, node.model_name, text_field(request, "model")),
            (Cause.ADAPTER_CHANGED, node.adapter_name, text_field(request, "lora_path")),
        ):
            if before != after:
                notices.append(
                    NewEvent(
                        "notice", cause, node.seq, stored_value=_json(before), replayed_value=_json(after)
                    )
                )
        if node.head_digest != head.digest:
            notices += await self._head_notice(settings, head, node)
        return notices

    async def _head_notice(self, settings: SessionSettings, head: Head, node: NodeRow) -> list[NewEvent]:
        cause, before, after = await explaining.head_difference(self._db, settings.id, node, head)
        if before == after:
            return []
        return [NewEvent("notice", cause, node.seq, stored_value=before, replayed_value=after)]


def text_field(request: ChatRequest, name: str) -> str | None:
    """A text the request's body names, as a column can hold it."""
    value = request.body.get(name)
    return storable(value) if isinstance(value, str) else None


def _json(value: str | None) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)
