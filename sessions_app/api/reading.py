"""GET /sessions/{id}: records along a path, accumulated ids, the tree, the drift against a fresh render.

The reply is written record by record: a record repeats the whole prompt of its turn, so the list as a whole
grows with the square of the turns, and is never held at once.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sessions_app import errors
from sessions_app.json_text import dumps
from sessions_app.packing import Ids
from sessions_app.rendering.protocol import Renderer
from sessions_app.store import attach, read
from sessions_app.store.pool import Database
from sessions_app.store.read import SessionSummary
from sessions_app.store.side import load_side, nodes_with_side
from sessions_app.store.values import PathMessage, SessionSettings, TurnRow
from sessions_app.turns import reading
from sessions_app.turns.describing import drift_of, epoch, healer_json, tree_json

logger = logging.getLogger(__name__)

RECORDS, TOKENS, MISMATCH, TREE = "records", "tokens", "mismatch", "tree"
PARTS = frozenset({RECORDS, TOKENS, MISMATCH, TREE})


@dataclass(frozen=True, slots=True)
class Selection:
    """What of a session is asked for. As it stands: everything of the active path."""

    leaf: int | None = None
    """Node whose path is shown; None = the active path's last."""
    parts: frozenset[str] = PARTS
    """`tokens` covers accumulated ids, and ids and logprobs inside of records."""
    after: int = 0
    """Records to skip, from the root."""
    limit: int | None = None
    """Records to show at most."""


@dataclass(frozen=True, slots=True)
class PathRows:
    """A path as it is stored."""

    turns: list[TurnRow]
    messages: list[PathMessage]
    with_side: frozenset[int]
    """Nodes with replay payloads, which are read one at a time: all of a path are too much to hold."""


async def session_chunks(
    db: Database, settings: SessionSettings, renderer: Renderer, wanted: Selection
) -> AsyncIterator[bytes]:
    """The reply, piece by piece. Everything that can be refused is refused before the first piece."""
    summary = await read.load_summary(db, settings.id)
    if summary is None:
        raise errors.SessionNotFound(settings.id.hex)
    path = await _path(db, settings, summary.active_seq if wanted.leaf is None else wanted.leaf)
    metadata = await _metadata(db, settings, renderer, summary, path, wanted)
    return _pieces(db, settings.id, path, metadata, wanted)


async def _pieces(
    db: Database, session_id: UUID, path: PathRows, metadata: dict[str, Any], wanted: Selection
) -> AsyncIterator[bytes]:
    yield b'{"session_id":' + dumps(session_id.hex)
    if RECORDS in wanted.parts:
        separator = b',"records":['
        async for record in _records(db, session_id, path, wanted):
            yield separator + dumps(record)
            separator = b","
            await asyncio.sleep(0)
        yield b"]" if separator == b"," else b',"records":[]'
    yield b',"metadata":' + dumps(metadata) + b"}"


async def _path(db: Database, settings: SessionSettings, seq: int | None) -> PathRows:
    if seq is None:
        return PathRows([], [], frozenset())
    turns = await read.load_turns(db, settings.id, seq)
    if not turns:
        raise errors.NotFound(f"node not found: {seq}")
    messages = await attach.load_path_messages(db, settings.id, seq)
    return PathRows(turns, messages, await nodes_with_side(db, settings.id))


async def _records(
    db: Database, session_id: UUID, path: PathRows, wanted: Selection
) -> AsyncIterator[dict[str, Any]]:
    """The records asked for, one at a time."""
    end = len(path.turns) if wanted.limit is None else wanted.after + wanted.limit
    with_tokens = TOKENS in wanted.parts
    raw = reading.raw_requests(path.turns, path.messages)
    prompts = reading.prompts_of(path.turns)
    for index, (turn, prompt, messages) in enumerate(zip(path.turns, prompts, raw, strict=True)):
        if wanted.after <= index < end:
            seq = turn.node.seq
            side = await load_side(db, session_id, seq) if seq in path.with_side else None
            yield record_json(
                turn,
                reading.request_of(turn, prompt, messages, with_tokens=with_tokens),
                reading.reply_of(turn, prompt, side, with_tokens=with_tokens),
            )


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


async def _metadata(
    db: Database,
    settings: SessionSettings,
    renderer: Renderer,
    summary: SessionSummary,
    path: PathRows,
    wanted: Selection,
) -> dict[str, Any]:
    """`metadata`, keys in the reference's order."""
    metadata: dict[str, Any] = {}
    tokens = reading.tokens_of(path.turns)
    if MISMATCH in wanted.parts:
        mismatch = await _drift(renderer, path, tokens)
        if mismatch is not None:
            metadata["tito_session_mismatch"] = mismatch
    if TOKENS in wanted.parts:
        metadata["accumulated_token_ids"] = tokens
    metadata["max_trim_tokens"] = renderer.max_trim_tokens
    if TREE in wanted.parts and settings.history_policy != "rollback":
        metadata["tree"] = tree_json(await read.load_tree(db, settings.id))
    if settings.history_policy == "linear":
        metadata["linear_healer"] = healer_json(summary.healer)
    return metadata


async def _drift(renderer: Renderer, path: PathRows, tokens: Ids) -> list[dict[str, Any]] | None:
    """Served ids against a fresh render of the stored messages; None where that cannot be computed."""
    if not path.turns:
        return None
    tools = json.loads(path.turns[-1].tools or "null")
    messages = reading.stored_messages(path.messages)
    began = path.turns[0].arrived_at
    try:
        return await asyncio.to_thread(drift_of, renderer, messages, tools, tokens, began)
    except Exception:
        logger.warning("drift could not be computed", exc_info=logger.isEnabledFor(logging.DEBUG))
        return None
