"""Requests that come twice: an Idempotency-Key, or `retry_policy=replay`, gets the stored reply.

A generation in flight, in this process or another, is joined. A failed one frees its key, so that the next
try generates. Nothing is replayed for another body: that is a conflict.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from sessions_app import errors
from sessions_app.backends.base import Generation
from sessions_app.backends.reply import extras
from sessions_app.history.causes import AttachKind, Cause
from sessions_app.packing import EMPTY_IDS
from sessions_app.store import attach, claims, read
from sessions_app.store.claims import Earlier
from sessions_app.store.commit import LateReason
from sessions_app.store.pool import Database
from sessions_app.store.read import LateRow
from sessions_app.store.values import SessionSettings, TurnRow
from sessions_app.turns import reading
from sessions_app.turns.values import Arrival, TurnResult

_GRACE_S = 30.0
"""How long a claim may be without its record before it counts as abandoned."""
_FIRST_LOOK_S, _SLOWEST_LOOK_S = 0.02, 0.5
_LONGEST_KEY = 255


@dataclass(frozen=True, slots=True)
class ReplayRules:
    """How long replies may be replayed and generations joined."""

    claim_ttl_s: float
    window_s: float
    patience_s: float
    """Longest wait for a generation in flight."""


@dataclass(frozen=True, slots=True)
class _Claim:
    """What stands for a request while it is generated, and how long its reply answers for it."""

    key: str
    ttl_s: float


class Replays:
    """Finds the stored reply of a request that was made before."""

    def __init__(self, db: Database, rules: ReplayRules) -> None:
        self._db = db
        self._rules = rules

    async def earlier_reply(self, settings: SessionSettings, arrival: Arrival) -> TurnResult | None:
        """The reply to replay; None: this request is to be generated (and holds its key, if it has one).

        Raises IdempotencyConflict for a key that belongs to another body.
        """
        claim = self._claim(settings, arrival)
        if claim is None:
            return None
        if arrival.idempotency_key is None:
            earlier = await claims.same_body(
                self._db, settings.id, arrival.request_hash, window_s=self._rules.window_s
            )
            if earlier is not None:
                return await self._stored(settings, earlier)
        return await self._joined(settings, arrival, claim)

    def _claim(self, settings: SessionSettings, arrival: Arrival) -> "_Claim | None":
        """The key of a request: the client's, or under `replay` its body, as no header can spell it."""
        if arrival.idempotency_key is not None:
            if len(arrival.idempotency_key) > _LONGEST_KEY:
                raise errors.InvalidArgument(f"Idempotency-Key must have at most {_LONGEST_KEY} characters")
            return _Claim(arrival.idempotency_key, self._rules.claim_ttl_s)
        if settings.retry_policy == "replay":
            return _Claim(f" body {arrival.request_hash.hex()}", self._rules.window_s)
        return None

    async def _joined(
        self, settings: SessionSettings, arrival: Arrival, claim: "_Claim"
    ) -> TurnResult | None:
        deadline, delay = time.monotonic() + self._rules.patience_s, _FIRST_LOOK_S
        while not await claims.acquire(
            self._db, settings.id, claim.key, arrival.request_hash, ttl_s=claim.ttl_s, grace_s=_GRACE_S
        ):
            earlier = await claims.holder(self._db, settings.id, claim.key)
            if earlier is not None and earlier.request_hash != arrival.request_hash:
                raise errors.IdempotencyConflict("this Idempotency-Key was used with another body")
            if earlier is not None and earlier.answered:
                return await self._stored(settings, earlier)
            delay = await self._pause(delay, deadline)
        return None

    async def _pause(self, delay: float, deadline: float) -> float:
        """Wait before looking again; the next delay."""
        if time.monotonic() + delay > deadline:
            raise errors.UpstreamTimeout("the generation this request would have joined did not end in time")
        await asyncio.sleep(delay)
        return min(delay * 2, _SLOWEST_LOOK_S)

    async def settle(self, settings: SessionSettings, arrival: Arrival, record_id: int) -> None:
        """Tie the key of a request to its record."""
        if claim := self._claim(settings, arrival):
            await claims.settle(self._db, settings.id, claim.key, record_id)

    @asynccontextmanager
    async def kept(self, settings: SessionSettings, arrival: Arrival) -> AsyncIterator[None]:
        """Keep the key of a request that waits before it has a record."""
        renewal = asyncio.create_task(self._renew(settings, self._claim(settings, arrival)))
        try:
            yield
        finally:
            renewal.cancel()

    async def _renew(self, settings: SessionSettings, claim: "_Claim | None") -> None:
        while claim is not None:
            await asyncio.sleep(_GRACE_S / 3)
            await claims.renew(self._db, settings.id, claim.key, ttl_s=claim.ttl_s)

    async def release(self, settings: SessionSettings, arrival: Arrival) -> None:
        """Free the key of a request that came to nothing before it had a record."""
        if claim := self._claim(settings, arrival):
            await claims.release(self._db, settings.id, claim.key)

    async def _stored(self, settings: SessionSettings, earlier: Earlier) -> TurnResult:
        if earlier.node_seq is not None:
            return await self.stored_turn(settings, earlier.node_seq)
        assert earlier.record_id is not None
        return await self._late(settings, earlier.record_id)

    async def stored_turn(self, settings: SessionSettings, seq: int) -> TurnResult:
        """The result of a node, as it was."""
        turn = await read.load_turn(self._db, settings.id, seq)
        assert turn is not None
        tokens = await attach.load_tokens(self._db, settings.id, seq)
        prompt = tokens[: turn.node.prompt_tokens]
        reply = reading.reply_of(turn, prompt)
        generation = _generation(reply, turn, turn.node.finish_reason, turn.node.response_id)
        generation = replace(generation, cached_tokens=turn.cached_tokens)
        return TurnResult(
            session_id=settings.id,
            generation=generation,
            message=_message(reply),
            reply=reading.told(turn.response, reply),
            ill_formed=turn.ill_formed,
            node_seq=seq,
            parent_seq=turn.node.parent_seq,
            kind=AttachKind(turn.attach_kind),
            cause=Cause(turn.cause) if turn.cause else None,
            reused_tokens=turn.node.prompt_tokens - len(turn.prompt_delta),
            replayed=True,
        )

    async def _late(self, settings: SessionSettings, record_id: int) -> TurnResult:
        late = await read.load_late(self._db, settings.id, record_id)
        assert late is not None
        served = EMPTY_IDS
        if late.parent_seq is not None:
            served = await attach.load_tokens(self._db, settings.id, late.parent_seq)
        reply = reading.late_reply(late, served)
        finish = str(reply.get("choices", [{}])[0].get("finish_reason") or "")
        return TurnResult(
            session_id=settings.id,
            generation=_generation(reply, late, finish, reply.get("id")),
            message=_message(reply),
            reply=reading.told(late.response, reply),
            ill_formed=False,
            node_seq=None,
            parent_seq=None,
            kind=AttachKind.APPEND,
            cause=None,
            reused_tokens=0,
            late=LateReason(late.reason),
            replayed=True,
        )


def _message(reply: Mapping[str, Any]) -> Mapping[str, Any]:
    message: Mapping[str, Any] = reply["choices"][0]["message"]
    return message


def _generation(
    reply: dict[str, Any], stored: TurnRow | LateRow, finish_reason: str, response_id: str | None
) -> Generation:
    usage = reply.get("usage") or {}
    meta = reply["choices"][0].get("meta_info")
    return Generation(
        ids=stored.completion,
        logprobs=stored.logprobs,
        finish_reason=finish_reason,
        raw_finish_reason=finish_reason,
        message=dict(_message(reply)),
        response_id=response_id,
        weight_version=None,
        prompt_tokens=usage.get("prompt_tokens"),
        completion_tokens=len(stored.completion),
        cached_tokens=0,
        engine_seconds=None,
        extras=extras(meta) if isinstance(meta, dict) else {},
        reply=reply,
        reply_text=stored.response,
    )
