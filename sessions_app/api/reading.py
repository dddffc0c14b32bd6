"""GET /sessions/{id}: records along a path, accumulated ids, the tree, the drift against a fresh render."""

import asyncio
import logging
from dataclasses import dataclass
from typing import Any

from sessions_app import errors
from sessions_app.packing import Ids
from sessions_app.rendering.protocol import Renderer
from sessions_app.store import attach, read
from sessions_app.store.pool import Database
from sessions_app.store.read import SessionSummary
from sessions_app.store.values import SessionSettings, TurnRow
from sessions_app.turns import reading
from sessions_app.turns.describing import drift_of, epoch, healer_json, tree_json

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PathView:
    """One path of a session, as GET shows it."""

    records: list[dict[str, Any]]
    tokens: Ids
    messages: list[Any]
    tools: Any


async def session_body(
    db: Database, settings: SessionSettings, renderer: Renderer, leaf: int | None
) -> dict[str, Any]:
    """The whole reply. `leaf`: the node whose path is shown; None = the active path."""
    summary = await read.load_summary(db, settings.id)
    if summary is None:
        raise errors.SessionNotFound(settings.id.hex)
    seq = summary.active_seq if leaf is None else leaf
    path = await _path(db, settings, seq)
    metadata = await session_metadata(db, settings, renderer, summary, path)
    return {"session_id": settings.id.hex, "records": path.records, "metadata": metadata}


async def _path(db: Database, settings: SessionSettings, seq: int | None) -> PathView:
    turns = await read.load_turns(db, settings.id, seq) if seq is not None else []
    if not turns:
        if seq is not None:
            raise errors.NotFound(f"node not found: {seq}")
        return PathView([], reading.tokens_of([]), [], None)
    stored = await attach.load_path_messages(db, settings.id, turns[-1].node.seq)
    side = await read.load_side(db, settings.id, [turn.node.seq for turn in turns])
    raw = reading.raw_requests(turns, stored)
    prompts = reading.prompts_of(turns)
    records = [
        record_json(
            turn,
            reading.request_of(turn, prompt, messages),
            reading.reply_of(turn, prompt, side.get(turn.node.seq)),
        )
        for turn, prompt, messages in zip(turns, prompts, raw, strict=True)
    ]
    last_tools = records[-1]["request"].get("tools")
    return PathView(records, reading.tokens_of(turns), reading.stored_messages(stored), last_tools)


def record_json(turn: TurnRow, request: dict[str, Any], response: dict[str, Any]) -> dict[str, Any]:
    """A record of the reference's shape."""
    return {
        "timestamp": epoch(turn.committed_at),
        "request_timestamp": epoch(turn.arrived_at),
        "method": "POST",
        "path": turn.path,
        "request": request,
        "response": response,
        "status_code": 200,
    }


async def session_metadata(
    db: Database,
    settings: SessionSettings,
    renderer: Renderer,
    summary: SessionSummary,
    path: PathView,
) -> dict[str, Any]:
    """`metadata`, keys in the reference's order."""
    metadata: dict[str, Any] = {}
    if path.records or settings.history_policy != "rollback":
        mismatch = await drift(renderer, path.messages, path.tools, path.tokens)
        if mismatch is not None:
            metadata["tito_session_mismatch"] = mismatch
    metadata["accumulated_token_ids"] = path.tokens
    metadata["max_trim_tokens"] = renderer.max_trim_tokens
    if settings.history_policy != "rollback":
        metadata["tree"] = tree_json(await read.load_tree(db, settings.id))
    if settings.history_policy == "linear":
        metadata["linear_healer"] = healer_json(summary.healer)
    return metadata


async def drift(
    renderer: Renderer, messages: list[Any], tools: Any, tokens: Ids
) -> list[dict[str, Any]] | None:
    """Served ids against a fresh render of the stored messages; None where that cannot be computed."""
    if not len(tokens):
        return None
    try:
        return await asyncio.to_thread(drift_of, renderer, messages, tools, tokens)
    except Exception:
        logger.warning("drift could not be computed", exc_info=logger.isEnabledFor(logging.DEBUG))
        return None
