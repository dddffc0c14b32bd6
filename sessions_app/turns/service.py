"""A turn from request to reply: prepare, generate, commit, in this order and no other.

Invariant: whatever happens, a record says what became of the request; a reply that was generated is stored
before the client sees it.
"""

import asyncio
import time
from collections import OrderedDict
from functools import partial
from uuid import UUID

from sessions_app import errors
from sessions_app.backends.base import Generation, GenerationRequest
from sessions_app.history.harness.profiles import define_profile
from sessions_app.store import profiles as profiles_store
from sessions_app.store import sessions
from sessions_app.store.pool import Database
from sessions_app.store.values import Intent, SessionSettings
from sessions_app.telemetry.exporter import NoSpans, SpanSink
from sessions_app.turns.admission import Admission
from sessions_app.turns.checkpoints import CheckpointCache
from sessions_app.turns.dispatching import generation_request
from sessions_app.turns.journal import TurnEntry
from sessions_app.turns.latencies import Latencies
from sessions_app.turns.ledger import Ledger
from sessions_app.turns.matching import Matching
from sessions_app.turns.pausing import WaitingRoom
from sessions_app.turns.prepare import Limits, Preparation, Prepared
from sessions_app.turns.profiles import Profile, Profiles
from sessions_app.turns.replaying import ReplayRules, Replays
from sessions_app.turns.storing import Storing
from sessions_app.turns.values import Arrival, ChatRequest, TurnResult
from sessions_app.turns.weights import WeightWatch
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
    ) -> None:
        self.db = db
        self._spans = spans or NoSpans()
        self.profiles = profiles
        self.cache = CheckpointCache(configuration.checkpoint_cache_mb * 1024 * 1024)
        self.admission = Admission(
            most=configuration.max_in_flight, most_a_session=configuration.max_in_flight_per_session
        )
        self.latencies = Latencies()
        self.weights = WeightWatch()
        self._configuration = configuration
        self._settings: OrderedDict[UUID, SessionSettings] = OrderedDict()
        defined = [define_profile(name, rules) for name, rules in configuration.harness_profiles.items()]
        self._matching = Matching(db, configuration.message_matcher, defined)
        self._ledger = Ledger(db, self._matching, configuration.instance_id)
        self._commits: set[asyncio.Task[TurnResult]] = set()
        self._replays = Replays(
            db,
            ReplayRules(
                configuration.idempotency_ttl_s, configuration.replay_window_s, configuration.engine_timeout
            ),
        )
        self._waiting_room = WaitingRoom(
            partial(profiles_store.is_paused, db),
            places=configuration.max_in_flight,
            patience_s=configuration.engine_timeout,
        )
        self._preparation = Preparation(
            db, self.cache, Limits(configuration.max_nodes, configuration.max_rollback)
        )
        self._storing = Storing(db, self.cache, self._preparation, self._ledger, configuration.r3_layers)

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
        return self._waiting_room.waiting

    def forget(self, session_id: UUID) -> None:
        """Drop the settings of a session that is gone."""
        self._settings.pop(session_id, None)

    async def stored(self, settings: SessionSettings, seq: int) -> TurnResult:
        """The result of a committed turn."""
        return await self._replays.stored_turn(settings, seq)

    async def run(self, settings: SessionSettings, request: ChatRequest) -> TurnResult:
        """One turn. Raises what refuses it, recorded."""
        with TurnEntry(settings.id, request.arrival, self._spans) as entry:
            try:
                with self.admission.place(settings.id):
                    entry.result = await self._run(settings, request)
                    return entry.result
            except errors.Overloaded as error:  # there was no place: nothing was done
                await self.refuse(settings, request.arrival, error, request)
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
        return await self._generated(settings, request)

    async def _generated(self, settings: SessionSettings, request: ChatRequest) -> TurnResult:
        """Prepare and generate, which may fail and then claim nothing; commit, which is never cut short."""
        record_id: int | None = None
        tied = False  # the key to the record, whose state frees it from then on
        try:
            profile = await self.profiles.get(settings.profile)
            prepared, outgoing, intent = await self._planned(settings, profile, request)
            stopwatch = request.arrival.stopwatch
            stopwatch.lap("assemble")
            writing = asyncio.create_task(self._preparation.write_intent(prepared, intent))
            try:
                record_id = await asyncio.shield(writing)
            except asyncio.CancelledError:
                record_id = await writing  # a record that is there needs an end
                raise
            stopwatch.lap("intent")
            await self._replays.settle(settings, request.arrival, record_id)
            tied = True
            generation, engine_ms = await self._generate(settings, profile, outgoing, record_id)
            stopwatch.lap("engine")
            self.weights.note(generation.worker, prepared.state.weight_version, generation.weight_version)
            self.latencies.observe("prepare", (intent.prepare_ms or 0.0) / 1000)
            self.latencies.observe("engine", engine_ms / 1000)
        except BaseException as error:
            if not tied:
                await asyncio.shield(self._replays.release(settings, request.arrival))
            if record_id is not None:
                request.arrival.stopwatch.lap("engine")
            await asyncio.shield(self._ended(settings, request, record_id, error))
            raise
        commit = asyncio.create_task(
            self._storing.store(prepared, profile, outgoing, record_id, generation, engine_ms)
        )
        self._commits.add(commit)
        commit.add_done_callback(self._commits.discard)
        started = time.perf_counter()
        result = await asyncio.shield(commit)
        self.latencies.observe("commit", time.perf_counter() - started)
        stopwatch.lap("commit")
        return result

    async def _ended(
        self, settings: SessionSettings, request: ChatRequest, record_id: int | None, error: BaseException
    ) -> None:
        """Nothing was generated, and a record says why."""
        if isinstance(error, errors.TitoError):
            return  # recorded where it was raised
        if record_id is None:
            await self._ledger.unprepared(settings, request, error)
        else:
            await self._ledger.broken(settings.id, record_id, error)

    async def _planned(
        self, settings: SessionSettings, profile: Profile, request: ChatRequest
    ) -> tuple[Prepared, GenerationRequest, Intent]:
        """What is to be generated, and the record that says so. What refuses the request is recorded too."""
        try:
            prepared = await self._prepared(settings, profile, request)
            outgoing = generation_request(prepared, profile, self._configuration)
            return prepared, outgoing, self._ledger.intent(prepared, profile, outgoing)
        except errors.TitoError as error:
            refusal = error
        except RecursionError:
            refusal = errors.InvalidJson("invalid JSON body: nested too deeply")
        await self.refuse(settings, request.arrival, refusal, request, profile)
        raise refusal

    async def _prepared(self, settings: SessionSettings, profile: Profile, request: ChatRequest) -> Prepared:
        """Prepared while the profile is not paused."""
        matcher = await self._matching.matcher_of(settings, request.arrival.headers)
        prepared = await self._preparation.prepare(settings, profile, matcher, request)
        while prepared.state.paused:
            async with self._replays.kept(settings, request.arrival):
                await self._waiting_room.wait(settings.profile)
            prepared = await self._preparation.prepare(settings, profile, matcher, request)
        return prepared

    async def refuse(
        self,
        settings: SessionSettings,
        arrival: Arrival,
        error: errors.TitoError,
        request: ChatRequest | None = None,
        profile: Profile | None = None,
    ) -> None:
        """Leave a record of a request that was refused. A session that is gone is forgotten here too."""
        if isinstance(error, errors.SessionNotFound):
            self.forget(settings.id)
        await self._ledger.refuse(settings, arrival, error, request, profile)

    async def _generate(
        self, settings: SessionSettings, profile: Profile, outgoing: GenerationRequest, record_id: int
    ) -> tuple[Generation, float]:
        started = time.perf_counter()
        try:
            generation = await profile.backend.generate(outgoing)
        except errors.TitoError as error:
            if isinstance(error, errors.UpstreamStatus):
                error.prompt_tokens = len(outgoing.prompt_ids)
            await self._ledger.failed(settings.id, record_id, error, _since(started))
            raise
        except BaseException as error:
            await asyncio.shield(self._ledger.broken(settings.id, record_id, error, _since(started)))
            raise
        return generation, _since(started)


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
