"""Records of turns: what is written of a request at each end it can have.

Invariant: every request that named a session has a record that says what became of it; a record never fails
a request that the database could not be told about.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from typing import Self
from uuid import UUID

from sessions_app import errors
from sessions_app.backends.base import GenerationRequest
from sessions_app.json_text import storable
from sessions_app.store import records
from sessions_app.store.commit import LateReason, Unattached, keep_unattached
from sessions_app.store.pool import LOST_CONNECTION, Database
from sessions_app.store.values import Intent, SessionSettings
from sessions_app.turns import explaining, recording, refusals
from sessions_app.turns.matching import Matching
from sessions_app.turns.positioning import History
from sessions_app.turns.prepare import Prepared
from sessions_app.turns.profiles import Profile
from sessions_app.turns.turnstile import Turnstile
from sessions_app.turns.values import Arrival, ChatRequest, TurnResult

logger = logging.getLogger(__name__)

_KEPT_ANSWER_BYTES = 65_536
_PATIENCE_S = 60.0
"""How long a refusal waits for others of its session before it goes without a record."""


class Ledger:
    """Writes the records of one process."""

    def __init__(self, db: Database, matching: Matching, process: str) -> None:
        self._db = db
        self._matching = matching
        self._process = process
        self._refusals = Turnstile()

    def intent(self, prepared: Prepared, profile: Profile, outgoing: GenerationRequest) -> Intent:
        """The record of a turn that is about to be generated."""
        arrival, raw = prepared.request.arrival, prepared.raw
        body = profile.backend.build_body(outgoing)
        return replace(
            self._blank(prepared.settings.id, arrival),
            state="intent",
            stream=prepared.request.stream,
            parent_seq=prepared.parent_node.seq if prepared.parent_node else None,
            attach_kind=prepared.kind,
            cause=prepared.cause,
            retry_of=prepared.retry_of,
            head=prepared.head,
            request_params=recording.request_params(body, outgoing.prompt_ids),
            client_params=recording.client_params(
                prepared.request, body, profile.backend.speaks_chat, raw, prepared.first_new
            ),
            message_count=len(prepared.request.messages),
            raw_base=raw.base,
            raw_reply=raw.reply,
            raw_leading=raw.leading,
            raw_tail=raw.tail,
            weight_version_dispatch=prepared.state.weight_version,
            prompt_tokens=len(outgoing.prompt_ids),
            reused_tokens=prepared.prompt.reused,
            added_tokens=len(prepared.prompt.delta),
            prepare_ms=(time.perf_counter() - arrival.started) * 1000,
        )

    def _blank(self, session_id: UUID, arrival: Arrival) -> Intent:
        return Intent(
            session_id=session_id,
            state="refused",
            protocol=arrival.protocol,
            path=arrival.path,
            stream=False,
            parent_seq=None,
            attach_kind=None,
            cause=None,
            retry_of=None,
            idempotency_key=arrival.idempotency_key,
            request_hash=arrival.request_hash,
            head=None,
            request_params=None,
            message_count=0,
            raw_base=0,
            raw_reply=None,
            raw_leading=None,
            raw_tail=None,
            weight_version_dispatch=None,
            prompt_tokens=None,
            reused_tokens=None,
            added_tokens=None,
            prepare_ms=None,
            process=self._process,
            arrived_at=arrival.arrived_at,
        )

    async def refuse(
        self,
        settings: SessionSettings,
        arrival: Arrival,
        error: errors.TitoError,
        request: ChatRequest | None = None,
        profile: Profile | None = None,
    ) -> None:
        """Leave a record of a request that was refused. A session that is gone takes none. `profile`: of the
        session, where preparing had begun."""
        if isinstance(error, errors.SessionNotFound | errors.NotReady):
            return
        try:
            async with self._refusals.only(settings.id, _PATIENCE_S):
                await self._refuse(settings, arrival, error, request, profile)
        except LOST_CONNECTION:
            logger.warning("database away; a request refused as %s has no record", error.code)

    async def _refuse(
        self,
        settings: SessionSettings,
        arrival: Arrival,
        error: errors.TitoError,
        request: ChatRequest | None,
        profile: Profile | None,
    ) -> None:
        intent = replace(
            self._blank(settings.id, arrival),
            message_count=len(request.messages) if request else 0,
            error_code=error.code,
            error_text=storable(str(error)),
            status_code=error.status,
            prepare_ms=(time.perf_counter() - arrival.started) * 1000,
        )
        kept = None
        if request is not None and profile is not None and isinstance(error, refusals.REPLAYABLE):
            kept = await refusals.kept_of(self._db, settings, profile, request)
        written = await records.insert(self._db, _with_kept(intent, kept), with_head=kept is not None)
        if request is None:
            return
        matcher = await self._matching.matcher_of(settings, arrival.headers)
        history = History(request.messages, matcher, ())
        events = await explaining.explain_refusal(self._db, settings.id, history, error)
        if events:
            await records.add_events(self._db, settings.id, written.id, events)

    async def replayed(self, settings: SessionSettings, request: ChatRequest, earlier: TurnResult) -> None:
        """The record of a request that was given an earlier reply."""
        intent = replace(
            self._blank(settings.id, request.arrival),
            state="replayed",
            stream=request.stream,
            retry_of=earlier.node_seq,
            message_count=len(request.messages),
            status_code=200,
        )
        await records.insert(self._db, intent, with_head=False)

    async def failed(
        self, session_id: UUID, record_id: int, error: errors.TitoError, engine_ms: float
    ) -> None:
        """The end of an intent whose engine failed, or answered what must not be stored."""
        try:
            await records.fail(
                self._db,
                session_id,
                record_id,
                state="upstream_error",
                status_code=error.status,
                error_code=error.code,
                error_text=storable(str(error)),
                response=_answer_text(error),
                reason=LateReason.FAILED_VALIDATION if errors.refused_answer(error) is not None else None,
                engine_ms=engine_ms,
            )
        except LOST_CONNECTION:
            logger.warning("database away; record %s stays an intent for recovery", record_id)

    async def unprepared(self, settings: SessionSettings, request: ChatRequest, error: BaseException) -> None:
        """The record of a request that ended before it had one: its client left, or something unexpected."""
        end = _End.of(error, "refused")
        intent = replace(
            self._blank(settings.id, request.arrival),
            state=end.state,
            stream=request.stream,
            message_count=len(request.messages),
            error_code=end.code,
            error_text=end.text,
            status_code=end.status,
            prepare_ms=(time.perf_counter() - request.arrival.started) * 1000,
        )
        await _without_fail(records.insert(self._db, intent, with_head=False))

    async def broken(
        self, session_id: UUID, record_id: int, error: BaseException, engine_ms: float | None = None
    ) -> None:
        """The end of an intent that came to nothing: its client left, or something unexpected. `engine_ms`:
        None where the engine was not asked."""
        end = _End.of(error, "refused" if engine_ms is None else "upstream_error")
        ending = records.fail(
            self._db,
            session_id,
            record_id,
            state=end.state,
            status_code=end.status,
            error_code=end.code,
            error_text=end.text,
            engine_ms=engine_ms,
        )
        await _without_fail(ending)

    async def kept(self, late: Unattached) -> None:
        """The end of an intent whose reply could not be stored as a node."""
        await _without_fail(keep_unattached(self._db, late))


def _with_kept(intent: Intent, kept: refusals.Kept | None) -> Intent:
    if kept is None:
        return intent
    return replace(intent, head=kept.head, raw_path=kept.path, raw_leading=kept.leading, raw_tail=kept.tail)


@dataclass(frozen=True, slots=True)
class _End:
    """How a request ended that nobody answered or refused."""

    state: str
    code: str
    text: str
    status: int | None
    """None: there was nobody to answer."""

    @classmethod
    def of(cls, error: BaseException, state: str) -> Self:
        """`state`: of what nothing here expects. Its text names the kind of error alone."""
        if isinstance(error, asyncio.CancelledError):
            if errors.SHUT_DOWN in error.args:
                return cls("cancelled", errors.Draining.code, errors.SHUT_DOWN, errors.Draining.status)
            text = "the client left and TITO_ON_DISCONNECT is abort"
            return cls("cancelled", "cancelled", text, None)
        return cls(state, errors.TitoError.code, f"internal error: {type(error).__name__}", 500)


async def _without_fail(ending: Awaitable[object]) -> None:
    """What goes wrong while an end is recorded does not hide why it ended; `recover` finds the intent."""
    try:
        await ending
    except Exception as error:
        logger.warning("the end of a request could not be recorded: %s", type(error).__name__)


def _answer_text(error: errors.TitoError) -> str | None:
    """What the engine answered: all of a generation that was refused, the beginning of anything else."""
    if isinstance(error, errors.UpstreamStatus):
        return storable(error.body[:_KEPT_ANSWER_BYTES].decode(errors="replace"))
    answer = errors.refused_answer(error)
    return None if answer is None else storable(answer.decode(errors="replace"))
