"""The one statement that makes a node, and what happens to a reply that cannot become one.

The statement updates the session row first, so commits of one session are serialised by that row;
everything else in it follows from the seq that update hands out. It applies only while the session is
open, at the version the turn was prepared at, and the record is still an intent: sending it twice (a
connection lost after it arrived) commits once. The record is locked before anything is written, so that a
turn is either committed or given up for dead, never both.
"""

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any
from uuid import UUID

from sessions_app.errors import TitoError
from sessions_app.json_text import storable
from sessions_app.packing import Ids, pack_ids, pack_logprobs
from sessions_app.store.pool import Executor, Transaction
from sessions_app.store.records import events_text
from sessions_app.store.values import Counters, NewNode, Reply

_COUNTERS = tuple(field.name for field in fields(Counters))

_COMMIT = """
    WITH s AS (
        UPDATE sessions_app_session SET
            next_seq = next_seq + 1, version = version + 1, active_seq = next_seq, last_activity_at = now(),
            detected_harness = coalesce(detected_harness, %(harness)s::text),
            keyless = keyless OR %(prefix_key)s::bytea IS NULL,
            passthrough = passthrough OR %(passthrough)s::bool,
            healed_turns = healed_turns + %(healed_turns)s::int,
            healed_prefix_tokens = healed_prefix_tokens + %(healed_prefix_tokens)s::int,
            nonlinear = nonlinear + %(nonlinear)s::int,
            close_unresolved = close_unresolved + %(close_unresolved)s::int, forks = forks + %(forks)s::int,
            rollbacks = rollbacks + %(rollbacks)s::int, retries = retries + %(retries)s::int,
            resets = resets + %(resets)s::int, prompt_tokens = prompt_tokens + %(prompt_tokens)s::int,
            added_tokens = added_tokens + %(added_tokens)s::int,
            generated_tokens = generated_tokens + %(generated_tokens)s::int
        WHERE id = %(session)s AND version = %(version)s AND status = 'open' AND deleted_at IS NULL
          AND EXISTS (SELECT 1 FROM sessions_app_record
                      WHERE session_id = %(session)s AND id = %(record)s::bigint AND state = 'intent'
                      FOR UPDATE)
        RETURNING next_seq - 1 AS seq
    ), n AS (
        INSERT INTO sessions_app_node (
            session_id, seq, parent_seq, root_seq, depth, message_start, message_count, prefix_key,
            request_key, raw_digest, head_digest, head_identity, context_digest, attach_kind, cause,
            retry_of, root_class, root_evidence, agent, response_id, finish_reason, raw_finish_reason,
            ill_formed, prompt_tokens, total_tokens, weight_version_dispatch, weight_version, model_name,
            adapter_name, record_id, committed_at
        )
        SELECT
            %(session)s, s.seq, %(parent)s::int, coalesce(%(root)s::int, s.seq), %(depth)s::int,
            %(message_start)s::int, %(message_count)s::int, %(prefix_key)s::bytea, %(request_key)s::bytea,
            %(raw_digest)s, %(head_digest)s, %(head_identity)s, %(context_digest)s, %(attach_kind)s::text,
            %(cause)s::text, %(retry_of)s::int, %(root_class)s, %(root_evidence)s, %(agent)s,
            %(response_id)s::text, %(finish_reason)s, %(raw_finish_reason)s, %(ill_formed)s,
            %(prompt_tokens)s::int, %(total_tokens)s::int, %(weight_version_dispatch)s,
            %(weight_version)s::text, %(model_name)s::text, %(adapter_name)s::text, %(record)s::bigint,
            clock_timestamp()
        FROM s
    ), m AS (
        INSERT INTO sessions_app_message (session_id, node_seq, position, role, generated, body, sidecar)
        SELECT
            %(session)s, s.seq, %(message_start)s::int + t.ordinal - 1, t.role, t.generated, t.body,
            t.sidecar
        FROM s, unnest(%(roles)s::text[], %(generated)s::bool[], %(bodies)s::text[], %(sidecars)s::text[])
            WITH ORDINALITY AS t (role, generated, body, sidecar, ordinal)
    ), c AS (
        INSERT INTO sessions_app_tokencheckpoint (
            session_id, node_seq, boundary_trim, glue_tokens, prompt_delta, completion, logprobs,
            logprob_width, logprob_texts
        )
        SELECT
            %(session)s, s.seq, %(boundary_trim)s::int, %(glue_tokens)s::int, %(prompt_delta)s,
            %(completion)s, %(logprobs)s, %(logprob_width)s::int, %(logprob_texts)s
        FROM s
    ), r AS (
        UPDATE sessions_app_record SET
            state = 'committed', lease = NULL, node_seq = s.seq, attach_kind = %(attach_kind)s::text,
            cause = %(cause)s::text, retry_of = %(retry_of)s::int, parent_seq = %(parent)s::int,
            raw_tail = NULL, client_params = coalesce(%(client_params)s::text, client_params),
            response = %(response)s, status_code = 200,
            prompt_tokens = %(prompt_tokens)s::int, reused_tokens = %(reused)s::int,
            added_tokens = %(added_tokens)s::int,
            raw_base = CASE WHEN %(parent)s::int IS NULL THEN 0 ELSE raw_base END,
            raw_reply = CASE WHEN %(parent)s::int IS NULL THEN NULL ELSE raw_reply END,
            raw_leading = CASE WHEN %(parent)s::int IS NULL THEN NULL ELSE raw_leading END,
            weight_version = %(weight_version)s::text, worker = %(worker)s::text,
            generated_tokens = %(generated_tokens)s::int, cached_tokens = %(cached_tokens)s::int,
            engine_ms = %(engine_ms)s, finished_at = clock_timestamp()
        FROM s WHERE session_id = %(session)s AND id = %(record)s::bigint
    )
"""

_EVENTS = """
    , e AS (
        INSERT INTO sessions_app_historyevent (
            session_id, record_id, node_seq, kind, cause, compared_seq, message_index, field, stored_value,
            replayed_value, char_offset, token_index, matcher, looser_matcher, detail, at
        )
        SELECT
            %(session)s, %(record)s::bigint, s.seq, t.kind, t.cause, t.compared_seq, t.message_index,
            t.field, t.stored_value, t.replayed_value, t.char_offset, t.token_index, t.matcher,
            t.looser_matcher, t.detail, clock_timestamp()
        FROM s, json_to_recordset(%(events)s::json) AS t (
            kind text, cause text, compared_seq int, message_index int, field text, stored_value text,
            replayed_value text, char_offset int, token_index int, matcher text, looser_matcher text,
            detail text
        )
    )
"""

_SIDE = """
    , p AS (
        INSERT INTO sessions_app_sidepayload (
            session_id, node_seq, kind, payload, start_row, layers, prefix_bytes, digest
        )
        SELECT
            %(session)s, s.seq, t.kind, t.payload, t.start_row, t.layers, t.prefix_bytes, t.digest
        FROM s, unnest(%(side_kinds)s::text[], %(side_payloads)s::bytea[], %(side_rows)s::int[],
                       %(side_layers)s::int[], %(side_prefixes)s::bigint[], %(side_digests)s::bytea[])
            AS t (kind, payload, start_row, layers, prefix_bytes, digest)
    )
"""

_UNATTACHED = """
    WITH r AS (
        UPDATE sessions_app_record SET
            state = 'late', reason = %(reason)s::text, response = %(response)s,
            status_code = %(status_code)s::int, error_code = %(error_code)s::text,
            error_text = %(error_text)s::text, parent_seq = %(parent)s::int,
            prompt_tokens = %(reused)s::int + %(added)s::int, reused_tokens = %(reused)s::int,
            added_tokens = %(added)s::int, weight_version = %(weight_version)s, worker = %(worker)s,
            generated_tokens = %(generated_tokens)s, cached_tokens = %(cached_tokens)s,
            engine_ms = %(engine_ms)s, finished_at = clock_timestamp()
        WHERE session_id = %(session)s AND id = %(record)s AND state IN ('intent', 'lost')
        RETURNING id
    ), u AS (
        INSERT INTO sessions_app_unattachedreply (
            session_id, record_id, prompt, completion, logprobs, logprob_width, logprob_texts,
            routed_experts, routed_experts_start, indexer_topk
        )
        SELECT
            %(session)s, r.id, %(prompt)s, %(completion)s, %(logprobs)s, %(logprob_width)s,
            %(logprob_texts)s, %(routed_experts)s::bytea, %(routed_experts_start)s::int,
            %(indexer_topk)s::bytea
        FROM r
    )
    INSERT INTO sessions_app_historyevent (session_id, record_id, kind, cause, compared_seq, at)
    SELECT
        %(session)s, r.id, 'late', %(cause)s::text, %(parent)s::int, clock_timestamp()
    FROM r
    WHERE %(cause)s::text IS NOT NULL
"""


class LateReason(StrEnum):
    """Why a generated reply was not attached."""

    CONCURRENT = "concurrent"
    """Another turn moved the active path first."""
    SESSION_DELETED = "session_deleted"
    SESSION_CLOSED = "session_closed"
    NODE_LIMIT = "node_limit"
    MAX_TURNS = "max_turns"
    """Turns that ran beside it were the last the session may hold."""
    LOST_INTENT = "lost_intent"
    """`recover` had given the request up for dead."""
    FAILED_VALIDATION = "failed_validation"
    """The engine's answer was refused; the record holds it."""
    PREFIX_MISMATCH = "prefix_mismatch"
    """Policy `rollback`: an engine that renders the messages itself did not go on from the stored ids."""
    INTERNAL_ERROR = "internal_error"
    """Storing it failed as nothing should."""


async def commit_node(db: Executor, new: NewNode) -> int | None:
    """Write a node with all that belongs to it; its seq, or None when the session moved on meanwhile."""
    query = (
        _COMMIT + (_EVENTS if new.events else "") + (_SIDE if new.reply.side else "") + "SELECT seq FROM s"
    )
    row = await db.fetch_one(query, _parameters(new))
    return row[0] if row else None


def _parameters(new: NewNode) -> dict[str, Any]:
    parent, reply = new.parent, new.reply
    logprobs = pack_logprobs(reply.logprobs)
    completion_tokens = len(reply.completion)
    parameters: dict[str, Any] = {
        "session": new.session_id,
        "record": new.record_id,
        "version": new.expected_version,
        "parent": parent.seq if parent else None,
        "root": parent.root_seq if parent else None,
        "depth": parent.depth + 1 if parent else 0,
        "message_start": parent.message_count if parent else 0,
        "message_count": (parent.message_count if parent else 0) + len(new.messages),
        "prefix_key": new.prefix_key,
        "request_key": new.request_key,
        "raw_digest": new.raw_digest,
        "client_params": new.client_params,
        "head_digest": new.head.digest,
        "head_identity": new.head.identity,
        "context_digest": new.context_digest,
        "attach_kind": new.attach_kind,
        "cause": new.cause,
        "retry_of": new.retry_of,
        "root_class": new.root_class,
        "root_evidence": new.root_evidence,
        "agent": new.agent,
        "harness": new.harness,
        "passthrough": new.passthrough,
        "prompt_tokens": new.prompt_tokens,
        "total_tokens": new.prompt_tokens + completion_tokens,
        "weight_version_dispatch": new.weight_version_dispatch,
        "model_name": new.model_name,
        "adapter_name": new.adapter_name,
        "roles": [message.role for message in new.messages],
        "generated": [message.generated for message in new.messages],
        "bodies": [message.body for message in new.messages],
        "sidecars": [message.sidecar for message in new.messages],
        "boundary_trim": new.boundary_trim,
        "glue_tokens": new.glue_tokens,
        "prompt_delta": pack_ids(new.prompt_delta),
        "added_tokens": len(new.prompt_delta),
        "reused": new.prompt_tokens - len(new.prompt_delta),
        "completion": pack_ids(reply.completion),
        "logprobs": logprobs.data,
        "logprob_width": logprobs.width,
        "logprob_texts": reply.logprob_texts,
        **_reply_parameters(reply),
        **{name: getattr(new.counters, name) for name in _COUNTERS},
    }
    if new.events:
        parameters["events"] = events_text(new.events)
    if reply.side:
        parameters["side_kinds"] = [rider.kind for rider in reply.side]
        parameters["side_payloads"] = [rider.payload for rider in reply.side]
        parameters["side_rows"] = [rider.start_row for rider in reply.side]
        parameters["side_layers"] = [rider.layers for rider in reply.side]
        parameters["side_prefixes"] = [rider.prefix_bytes for rider in reply.side]
        parameters["side_digests"] = [rider.digest for rider in reply.side]
    return parameters


def _reply_parameters(reply: Reply) -> dict[str, Any]:
    return {
        "response": reply.response,
        "response_id": reply.response_id,
        "finish_reason": reply.finish_reason,
        "raw_finish_reason": reply.raw_finish_reason,
        "ill_formed": reply.ill_formed,
        "weight_version": reply.weight_version,
        "worker": reply.worker,
        "cached_tokens": reply.cached_tokens,
        "engine_ms": reply.engine_ms,
        "generated_tokens": len(reply.completion),
    }


@dataclass(frozen=True, slots=True)
class LockedSession:
    """A session row under lock, and what became of one of its records."""

    open: bool
    deleted: bool
    version: int
    next_seq: int
    active_seq: int | None
    record_state: str | None
    record_node: int | None


async def lock_session(transaction: Transaction, session_id: UUID, record_id: int) -> LockedSession | None:
    """Lock the session row, so that what is read next stays true until the transaction ends. Records of other
    requests, which only refer to it, are written meanwhile.
    """
    row = await transaction.fetch_one(
        """
        SELECT s.status = 'open' AND s.deleted_at IS NULL, s.deleted_at IS NOT NULL, s.version, s.next_seq,
            s.active_seq, r.state, r.node_seq
        FROM sessions_app_session s
        LEFT JOIN sessions_app_record r ON r.session_id = s.id AND r.id = %s
        WHERE s.id = %s FOR NO KEY UPDATE OF s
        """,
        (record_id, session_id),
    )
    return LockedSession(*row) if row else None


@dataclass(frozen=True, slots=True)
class Unattached:
    """A reply that becomes no node."""

    session_id: UUID
    record_id: int
    parent_seq: int | None
    """The attach point it was generated from."""
    reused: int
    """Ids of that node that were fed before `prompt`."""
    prompt: Ids
    reply: Reply
    reason: LateReason
    cause: str | None
    """Of its event; None = there is none in the history to tell."""
    error: TitoError | None = None
    """What its client was answered in its place, who may ask again; None = it got the reply."""


async def keep_unattached(db: Executor, late: Unattached) -> None:
    """Keep a reply that became no node: its record, its tokens, an event."""
    logprobs = pack_logprobs(late.reply.logprobs)
    side = {rider.kind: rider for rider in late.reply.side}
    routed, indexer = side.get("routed_experts"), side.get("indexer_topk")
    await db.fetch_all(
        _UNATTACHED,
        {
            "session": late.session_id,
            "record": late.record_id,
            "reason": str(late.reason),
            "cause": late.cause,
            "status_code": late.error.status if late.error else 200,
            "error_code": late.error.code if late.error else None,
            "error_text": storable(str(late.error)) if late.error else None,
            "parent": late.parent_seq,
            "reused": late.reused,
            "added": len(late.prompt),
            "prompt": pack_ids(late.prompt),
            "completion": pack_ids(late.reply.completion),
            "logprobs": logprobs.data,
            "logprob_width": logprobs.width,
            "logprob_texts": late.reply.logprob_texts,
            "routed_experts": routed.payload if routed else None,
            "routed_experts_start": routed.start_row if routed else None,
            "indexer_topk": indexer.payload if indexer else None,
            **_reply_parameters(late.reply),
        },
    )
