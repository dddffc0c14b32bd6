"""A turn from request to reply: a place, an earlier reply where one is asked for, else a new one.

Invariant: whatever happens, a record says what became of the request; a reply that was generated is stored
before the client sees it.
"""

import asyncio
from collections import OrderedDict
from uuid import UUID

from sessions_app import errors
from sessions_app.store import sessions
from sessions_app.store.leases import Lease
from sessions_app.store.pool import Database
from sessions_app.store.values import SessionSettings
from sessions_app.telemetry.exporter import NoSpans, SpanSink
from sessions_app.turns.admission import Admission
from sessions_app.turns.checkpoints import CheckpointCache
from sessions_app.turns.generating import Generating
from sessions_app.turns.journal import TurnEntry
from sessions_app.turns.ledger import Ledger
from sessions_app.turns.matching import configured_matching
from sessions_app.turns.prepare import Limits, Preparation
from sessions_app.turns.profiles import Profiles
from sessions_app.turns.replaying import ReplayRules, Replays
from sessions_app.turns.storing import Storing
from sessions_app.turns.values import Arrival, ChatRequest, TurnResult
from tito_project.configuration import Configuration

_SETTINGS_KEPT = 20_000


class TurnService:
    """Serves turns of all sessions of this process."""

    def __init__(
        self,
        db: Database,
        profiles: Profiles,
        configuration: Configuration,
        spans: SpanSink | None = None,
        lease: Lease | None = None,
    ) -> None:
        """`lease`: that somebody keeps for this process; without one only age tells that it has died."""
        self.db = db
        self._spans = spans or NoSpans()
        self.profiles = profiles
        self.cache = CheckpointCache(configuration.checkpoint_cache_mb * 1024 * 1024)
        self.admission = Admission(
            most=configuration.max_in_flight, most_a_session=configuration.max_in_flight_per_session
        )
        self._settings: OrderedDict[UUID, SessionSettings] = OrderedDict()
        matching = configured_matching(db, configuration)
        self._ledger = Ledger(db, matching, configuration.instance_id)
        self._replays = Replays(
            db,
            ReplayRules(
                configuration.idempotency_ttl_s, configuration.replay_window_s, configuration.engine_timeout
            ),
        )
        limits = Limits(configuration.max_nodes, configuration.max_rollback)
        preparation = Preparation(db, self.cache, limits, lease)
        self._generating = Generating(
            db,
            profiles,
            configuration,
            matching=matching,
            ledger=self._ledger,
            replays=self._replays,
            preparation=preparation,
            storing=Storing(db, self.cache, preparation, self._ledger, configuration.r3_layers),
        )
        self.latencies = self._generating.latencies
        self.weights = self._generating.weights

    async def settings_of(self, session_id: UUID) -> SessionSettings:
        """The settings of a session. Raises SessionNotFound; a cached session may have been deleted since."""
        settings = self._settings.get(session_id)
        if settings is None:
            settings = await sessions.load_settings(self.db, session_id)
            if settings is None:
                raise errors.SessionNotFound(session_id.hex)
            self.remember(settings)
        else:
            self._settings.move_to_end(session_id)
        return settings

    def remember(self, settings: SessionSettings) -> None:
        """Keep settings, which never change."""
        self._settings[settings.id] = settings
        if len(self._settings) > _SETTINGS_KEPT:
            self._settings.popitem(last=False)

    @property
    def in_flight(self) -> int:
        """Turns in progress."""
        return self.admission.in_flight

    @property
    def held(self) -> int:
        """Turns that wait for a weight update."""
        return self._generating.waiting_room.waiting

    def forget(self, session_id: UUID) -> None:
        """Drop the settings of a session that is gone."""
        self._settings.pop(session_id, None)

    async def stored(self, settings: SessionSettings, seq: int) -> TurnResult:
        """The result of a committed turn."""
        return await self._replays.stored_turn(settings, seq)

    async def run(self, settings: SessionSettings, request: ChatRequest) -> TurnResult:
        """One turn. Raises what refuses it, recorded. A session that is gone is forgotten."""
        with TurnEntry(settings.id, request.arrival, self._spans) as entry:
            try:
                with self.admission.place(settings.id):
                    entry.result = await self._run(settings, request)
                    return entry.result
            except errors.Overloaded as error:  # there was no place: nothing was done
                await self.refuse(settings, request.arrival, error, request)
                raise
            except errors.SessionNotFound:
                self.forget(settings.id)
                raise

    async def _run(self, settings: SessionSettings, request: ChatRequest) -> TurnResult:
        arrival = request.arrival
        try:
            earlier = await self._replays.earlier_reply(settings, arrival)
        except errors.TitoError as error:
            await self.refuse(settings, arrival, error, request)
            raise
        except BaseException as error:
            await asyncio.shield(self._ledger.unprepared(settings, request, error))
            raise
        if earlier is not None:
            await self._ledger.replayed(settings, request, earlier)
            return earlier
        return await self._generating.turn(settings, request)

    async def refuse(
        self,
        settings: SessionSettings,
        arrival: Arrival,
        error: errors.TitoError,
        request: ChatRequest | None = None,
    ) -> None:
        """Leave a record of a request that was refused before it could be planned."""
        await self._ledger.refuse(settings, arrival, error, request)
