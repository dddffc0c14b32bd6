"""Records: an intent before the engine is called, and how every request that became no node ended."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any
from uuid import UUID

from psycopg.errors import ForeignKeyViolation

from sessions_app.errors import SessionNotFound
from sessions_app.json_text import storable, text_of
from sessions_app.store.pool import Executor
from sessions_app.store.values import Intent, NewEvent

_HEAD = """
    h AS (
        INSERT INTO sessions_app_requesthead (
            session_id, digest, identity, tools, template_kwargs, template_fingerprint,
            tokenizer_fingerprint
        ) VALUES (
            %(session)s, %(head_digest)s, %(head_identity)s, %(tools)s, %(template_kwargs)s,
            %(template_fingerprint)s, %(tokenizer_fingerprint)s
        )
        ON CONFLICT DO NOTHING
    ),
"""

_INTENT = """
    k AS (
        UPDATE sessions_app_record SET state = 'confirmed', confirmed_at = %(arrived_at)s
        WHERE session_id = %(session)s AND node_seq = %(parent)s AND state = 'committed'
    )
    INSERT INTO sessions_app_record (
        session_id, state, protocol, path, stream, parent_seq, attach_kind, cause, retry_of,
        idempotency_key, request_hash, head_digest, request_params, message_count, raw_base, raw_reply,
        raw_leading, raw_tail, raw_path, weight_version_dispatch, prompt_tokens, reused_tokens, added_tokens,
        prepare_ms, process, lease, arrived_at, error_code, error_text, status_code, client_params,
        finished_at
    ) VALUES (
        %(session)s, %(state)s::text, %(protocol)s, %(path)s, %(stream)s, %(parent)s, %(attach_kind)s,
        %(cause)s, %(retry_of)s, %(idempotency_key)s, %(request_hash)s, %(head_digest)s, %(request_params)s,
        %(message_count)s, %(raw_base)s, %(raw_reply)s, %(raw_leading)s, %(raw_tail)s, %(raw_path)s,
        %(weight_version_dispatch)s, %(prompt_tokens)s, %(reused_tokens)s, %(added_tokens)s, %(prepare_ms)s,
        %(process)s, %(lease)s::bigint, %(arrived_at)s, %(error_code)s, %(error_text)s, %(status_code)s,
        %(client_params)s,
        CASE WHEN %(state)s::text = 'intent' THEN NULL ELSE clock_timestamp() END
    ) RETURNING id, %(lease)s::bigint IS NULL OR EXISTS (
        SELECT 1 FROM sessions_app_processlease
        WHERE id = %(lease)s::bigint AND expires_at > clock_timestamp())
"""

_EVENT_COLUMNS = tuple(field.name for field in fields(NewEvent))


@dataclass(frozen=True, slots=True)
class Written:
    """A record that is stored."""

    id: int
    leased: bool
    """False: the lease it names has run out, so that others may give the record up."""


async def insert(db: Executor, intent: Intent, *, with_head: bool) -> Written:
    """Store a record. `with_head`: also store the head, unless the session has it.

    Raises SessionNotFound where the session's rows were removed meanwhile.
    """
    query = "WITH " + (_HEAD if with_head and intent.head else "") + _INTENT
    try:
        row = await db.fetch_one(query, _parameters(intent))
    except ForeignKeyViolation:
        raise SessionNotFound(intent.session_id.hex) from None
    assert row is not None
    return Written(*row)


def _parameters(intent: Intent) -> dict[str, Any]:
    head = intent.head
    return {
        "session": intent.session_id,
        "parent": intent.parent_seq,
        "head_digest": head.digest if head else None,
        "head_identity": head.identity if head else None,
        "tools": head.tools if head else None,
        "template_kwargs": head.template_kwargs if head else None,
        "template_fingerprint": head.template_fingerprint if head else None,
        "tokenizer_fingerprint": head.tokenizer_fingerprint if head else None,
        **{
            name: getattr(intent, name)
            for name in (
                "state",
                "protocol",
                "path",
                "stream",
                "attach_kind",
                "cause",
                "retry_of",
                "idempotency_key",
                "request_hash",
                "request_params",
                "message_count",
                "raw_base",
                "raw_reply",
                "raw_leading",
                "raw_tail",
                "raw_path",
                "weight_version_dispatch",
                "prompt_tokens",
                "reused_tokens",
                "added_tokens",
                "prepare_ms",
                "process",
                "lease",
                "arrived_at",
                "error_code",
                "error_text",
                "status_code",
                "client_params",
            )
        },
    }


async def fail(
    db: Executor,
    session_id: UUID,
    record_id: int,
    *,
    state: str,
    status_code: int | None,
    error_code: str,
    error_text: str,
    response: str | None = None,
    reason: str | None = None,
    engine_ms: float | None = None,
) -> None:
    """End an intent that made no node: upstream_error, cancelled or refused. `reason`: of a reply that was
    generated all the same.
    """
    await db.execute(
        """
        UPDATE sessions_app_record SET state = %s, status_code = %s, error_code = %s, error_text = %s,
            response = %s, reason = %s, engine_ms = %s, finished_at = clock_timestamp()
        WHERE session_id = %s AND id = %s AND state = 'intent'
        """,
        (state, status_code, error_code, error_text, response, reason, engine_ms, session_id, record_id),
    )


def events_text(events: Sequence[NewEvent]) -> str:
    """Events as the JSON list that statements read rows from."""
    return text_of([{name: _held(getattr(event, name)) for name in _EVENT_COLUMNS} for event in events])


def _held(value: Any) -> Any:
    return storable(value) if isinstance(value, str) else value


async def add_events(
    db: Executor, session_id: UUID, record_id: int | None, events: Sequence[NewEvent]
) -> None:
    """Events of a request that made no node."""
    await db.execute(
        f"""
        INSERT INTO sessions_app_historyevent (session_id, record_id, {", ".join(_EVENT_COLUMNS)}, at)
        SELECT %(session)s, %(record)s, {", ".join("t." + name for name in _EVENT_COLUMNS)}, clock_timestamp()
        FROM json_to_recordset(%(events)s::json) AS t (
            kind text, cause text, compared_seq int, message_index int, field text, stored_value text,
            replayed_value text, char_offset int, token_index int, matcher text, looser_matcher text, detail
            text)
        """,
        {
            "session": session_id,
            "record": record_id,
            "events": events_text(events),
        },
    )
