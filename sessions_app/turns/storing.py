"""From an engine's answer to a node: the reply is parsed, stored, and told to whoever asked.

Invariant: what was generated is never lost. A reply that cannot be stored for no reason that is known here is
kept beside the tree, which stays as it was.
"""

import logging
from dataclasses import replace

from sessions_app import errors
from sessions_app.backends.base import Generation, GenerationRequest
from sessions_app.history.causes import Cause
from sessions_app.packing import Ids
from sessions_app.store.commit import LateReason
from sessions_app.store.pool import LOST_CONNECTION, Database
from sessions_app.store.values import Reply
from sessions_app.turns import recording
from sessions_app.turns.checkpoints import CheckpointCache
from sessions_app.turns.commit import Committed, commit_turn, unattached
from sessions_app.turns.ledger import Ledger
from sessions_app.turns.prepare import Preparation, Prepared
from sessions_app.turns.profiles import Profile
from sessions_app.turns.prompting import Prompt
from sessions_app.turns.replying import ChatReply, chat_reply
from sessions_app.turns.rerendering import check_prefix, observed
from sessions_app.turns.turnstile import Turnstile
from sessions_app.turns.values import TurnResult
from sessions_app.unexpected import whence

logger = logging.getLogger(__name__)


class Storing:
    """Stores the replies of one process."""

    def __init__(
        self,
        db: Database,
        cache: CheckpointCache,
        preparation: Preparation,
        ledger: Ledger,
        layers: int | None,
    ) -> None:
        """`layers`: of routed-experts rows, None = unknown."""
        self._db = db
        self._cache = cache
        self._preparation = preparation
        self._ledger = ledger
        self._layers = layers
        self._turnstile = Turnstile()

    async def store(
        self,
        prepared: Prepared,
        profile: Profile,
        outgoing: GenerationRequest,
        record_id: int,
        generation: Generation,
        engine_ms: float,
    ) -> TurnResult:
        """Store a reply; one that cannot be stored for no known reason is kept beside the tree."""
        try:
            if generation.prompt_ids is not None:
                prepared = await self._observed(prepared, profile, generation, generation.prompt_ids)
            replied = _replied(prepared, profile, outgoing, generation)
            stored = await self._storable(prepared, replied, outgoing, record_id, engine_ms)
            committed = await commit_turn(
                self._db, self._turnstile, prepared, record_id, replied.message, stored
            )
        except errors.PrefixMismatch as error:
            bare = recording.bare_reply(generation, engine_ms)
            reason, cause = LateReason.PREFIX_MISMATCH, Cause.ENGINE_RERENDER
            kept = unattached(_as_fed(prepared, generation), record_id, bare, reason, cause)
            await self._ledger.kept(replace(kept, error=error))
            raise
        except (errors.TitoError, *LOST_CONNECTION):
            raise
        except Exception as error:
            logger.error("the reply of record %s could not be stored: %s", record_id, whence(error))
            told = errors.UnrecordedReply("internal error")
            bare = recording.bare_reply(generation, engine_ms)
            kept = unattached(prepared, record_id, bare, LateReason.INTERNAL_ERROR, None)
            await self._ledger.kept(replace(kept, error=told))
            raise told from error
        if committed.seq is not None:
            self._keep_tokens(prepared, committed.seq, generation.ids)
        return _result(prepared, replied, committed)

    async def _observed(
        self, prepared: Prepared, profile: Profile, generation: Generation, fed: Ids
    ) -> Prepared:
        """The turn of an engine that rendered the messages itself."""
        served = await self._preparation.served(prepared)
        max_trim = profile.renderer.max_trim_tokens
        check_prefix(prepared, served, recording.joined(fed, generation.ids), max_trim=max_trim)
        return observed(prepared, served, fed, max_trim=max_trim)

    async def _storable(
        self,
        prepared: Prepared,
        replied: ChatReply,
        outgoing: GenerationRequest,
        record_id: int,
        engine_ms: float,
    ) -> Reply:
        """The reply as it is stored. Raises UpstreamInvalidReply, recorded, on what is nested too deeply."""
        try:
            return self._stored(replied, outgoing, engine_ms)
        except errors.InvalidJson:
            error = errors.UpstreamInvalidReply("invalid engine reply: nested too deeply")
            error.answer = replied.generation.reply_text.encode()
            await self._ledger.failed(prepared.settings.id, record_id, error, engine_ms)
            raise error from None

    def _stored(self, replied: ChatReply, outgoing: GenerationRequest, engine_ms: float) -> Reply:
        generation = replied.generation
        return recording.stored_reply(
            generation,
            generation.reply or recording.built_reply(generation, replied.body),
            ill_formed=replied.ill_formed,
            engine_ms=engine_ms,
            layers=self._layers,
            start_row=outgoing.routed_experts_start_len if generation.prompt_ids is None else None,
        )

    def _keep_tokens(self, prepared: Prepared, seq: int, completion: Ids) -> None:
        tokens = recording.joined(prepared.prompt.ids, completion)
        if prepared.parent_node is not None:
            self._cache.drop(prepared.settings.id, prepared.parent_node.seq)
        self._cache.put(prepared.settings.id, seq, tokens)


def _as_fed(prepared: Prepared, generation: Generation) -> Prepared:
    """A turn that reuses no stored id."""
    fed = prepared.prompt.ids if generation.prompt_ids is None else generation.prompt_ids
    return replace(prepared, prompt=Prompt(fed, fed, 0, 0, 0))


def _replied(
    prepared: Prepared, profile: Profile, outgoing: GenerationRequest, generation: Generation
) -> ChatReply:
    model = str(prepared.request.body.get("model") or profile.name)
    return chat_reply(generation, profile.renderer, outgoing.tools, model, len(prepared.prompt.ids))


def _result(prepared: Prepared, replied: ChatReply, committed: Committed) -> TurnResult:
    return TurnResult(
        session_id=prepared.settings.id,
        generation=replied.generation,
        message=replied.message,
        reply=replied.body,
        ill_formed=replied.ill_formed,
        node_seq=committed.seq,
        parent_seq=prepared.parent_node.seq if prepared.parent_node else None,
        kind=committed.kind,
        cause=committed.cause,
        reused_tokens=prepared.prompt.reused,
        late=committed.late,
    )
