"""One generation: an intent, the engine's work, the stored reply.

Invariant: whatever ends it, its record has an end, and an idempotency key that was claimed for it is tied to
the record or free again.
"""

import asyncio
import time
from dataclasses import dataclass
from functools import partial

from sessions_app import errors
from sessions_app.backends.base import Generation, GenerationRequest
from sessions_app.store import profiles as profiles_store
from sessions_app.store.pool import Database
from sessions_app.store.values import Intent, SessionSettings
from sessions_app.turns.dispatching import generation_request
from sessions_app.turns.latencies import Latencies
from sessions_app.turns.ledger import Ledger
from sessions_app.turns.matching import Matching
from sessions_app.turns.pausing import WaitingRoom
from sessions_app.turns.prepare import Preparation, Prepared
from sessions_app.turns.profiles import Profile, Profiles
from sessions_app.turns.replaying import Replays
from sessions_app.turns.storing import Storing
from sessions_app.turns.values import ChatRequest, TurnResult
from sessions_app.turns.weights import WeightWatch
from tito_project.configuration import Configuration


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be generated, and the record that says so."""

    profile: Profile
    prepared: Prepared
    outgoing: GenerationRequest
    intent: Intent


@dataclass(slots=True)
class _Progress:
    """How far a generation came."""

    record_id: int | None = None
    """Its intent."""
    tied: bool = False
    """The idempotency key belongs to the record, whose state frees it from then on."""
    asked_at: float | None = None
    """When the engine was called, in seconds of perf_counter; None = it was not."""

    @property
    def engine_ms(self) -> float | None:
        """Since the engine was called."""
        return None if self.asked_at is None else (time.perf_counter() - self.asked_at) * 1000


class Generating:
    """Generates the turns of one process."""

    def __init__(
        self,
        db: Database,
        profiles: Profiles,
        configuration: Configuration,
        *,
        matching: Matching,
        ledger: Ledger,
        replays: Replays,
        preparation: Preparation,
        storing: Storing,
    ) -> None:
        self.latencies = Latencies()
        self.weights = WeightWatch()
        self.waiting_room = WaitingRoom(
            partial(profiles_store.is_paused, db),
            places=configuration.max_in_flight,
            patience_s=configuration.engine_timeout,
        )
        self._profiles = profiles
        self._configuration = configuration
        self._matching = matching
        self._ledger = ledger
        self._replays = replays
        self._preparation = preparation
        self._storing = storing
        self._commits: set[asyncio.Task[TurnResult]] = set()

    async def turn(self, settings: SessionSettings, request: ChatRequest) -> TurnResult:
        """Plan and generate, which may fail and then claims nothing; store, which is never cut short."""
        progress = _Progress()
        try:
            plan = await self._planned(settings, request)
            request.arrival.stopwatch.lap("assemble")
            record_id = await self._intended(settings, request, plan, progress)
            generation, engine_ms = await self._generated(request, plan, progress)
        except BaseException as error:
            await asyncio.shield(self._ended(settings, request, progress, error))
            raise
        return await self._stored(request, plan, record_id, generation, engine_ms)

    async def _planned(self, settings: SessionSettings, request: ChatRequest) -> Plan:
        """What refuses the request is recorded here."""
        profile = await self._profiles.get(settings.profile)
        try:
            prepared = await self._prepared(settings, profile, request)
            outgoing = generation_request(prepared, profile, self._configuration)
            return Plan(profile, prepared, outgoing, self._ledger.intent(prepared, profile, outgoing))
        except errors.TitoError as error:
            refusal = error
        except RecursionError:
            refusal = errors.InvalidJson("invalid JSON body: nested too deeply")
        await self._ledger.refuse(settings, request.arrival, refusal, request, profile)
        raise refusal

    async def _prepared(self, settings: SessionSettings, profile: Profile, request: ChatRequest) -> Prepared:
        """Prepared while the profile is not paused."""
        matcher = await self._matching.matcher_of(settings, request.arrival.headers)
        prepared = await self._preparation.prepare(settings, profile, matcher, request)
        while prepared.state.paused:
            async with self._replays.kept(settings, request.arrival):
                await self.waiting_room.wait(settings.profile)
            prepared = await self._preparation.prepare(settings, profile, matcher, request)
        return prepared

    async def _intended(
        self, settings: SessionSettings, request: ChatRequest, plan: Plan, progress: _Progress
    ) -> int:
        """The id of the stored intent; the idempotency key is its own from now on."""
        writing = asyncio.create_task(self._preparation.write_intent(plan.prepared, plan.intent))
        try:
            record_id = await asyncio.shield(writing)
        except asyncio.CancelledError:
            progress.record_id = await writing  # a record that is there needs an end
            raise
        progress.record_id = record_id
        request.arrival.stopwatch.lap("intent")
        await self._replays.settle(settings, request.arrival, record_id)
        progress.tied = True
        return record_id

    async def _generated(
        self, request: ChatRequest, plan: Plan, progress: _Progress
    ) -> tuple[Generation, float]:
        """What the engine sampled, and its milliseconds."""
        started = progress.asked_at = time.perf_counter()
        try:
            generation = await plan.profile.backend.generate(plan.outgoing)
        except errors.UpstreamStatus as error:
            error.prompt_tokens = len(plan.outgoing.prompt_ids)
            raise
        seconds = time.perf_counter() - started
        request.arrival.stopwatch.lap("engine")
        dispatched = plan.prepared.state.weight_version
        self.weights.note(generation.worker, dispatched, generation.weight_version)
        self.latencies.observe("prepare", (plan.intent.prepare_ms or 0.0) / 1000)
        self.latencies.observe("engine", seconds)
        return generation, seconds * 1000

    async def _ended(
        self, settings: SessionSettings, request: ChatRequest, progress: _Progress, error: BaseException
    ) -> None:
        """Nothing was generated, and a record says why."""
        if not progress.tied:
            await self._replays.release(settings, request.arrival)
        if progress.record_id is None:
            if not isinstance(error, errors.TitoError):  # else recorded where it was raised
                await self._ledger.unprepared(settings, request, error)
            return
        request.arrival.stopwatch.lap("engine")
        engine_ms = progress.engine_ms
        if isinstance(error, errors.TitoError) and engine_ms is not None:
            await self._ledger.failed(settings.id, progress.record_id, error, engine_ms)
        else:
            await self._ledger.broken(settings.id, progress.record_id, error, engine_ms)

    async def _stored(
        self, request: ChatRequest, plan: Plan, record_id: int, generation: Generation, engine_ms: float
    ) -> TurnResult:
        """A task of its own: a client that leaves does not lose the reply."""
        storing = asyncio.create_task(
            self._storing.store(plan.prepared, plan.profile, plan.outgoing, record_id, generation, engine_ms)
        )
        self._commits.add(storing)
        storing.add_done_callback(self._commits.discard)
        started = time.perf_counter()
        result = await asyncio.shield(storing)
        self.latencies.observe("commit", time.perf_counter() - started)
        request.arrival.stopwatch.lap("commit")
        return result
