"""`POST /sessions/{id}/samples`: loads a session on the loop, assembles it in a thread of its own pool.

Invariant: nothing here holds a database connection while it assembles, and no chat turn waits for a thread
that samples use.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from sessions_app.errors import SessionNotFound
from sessions_app.json_text import dumps
from sessions_app.rendering.protocol import Renderer
from sessions_app.store import attach, read
from sessions_app.store.pool import Database
from sessions_app.store.values import SessionSettings
from sessions_app.turns import reading
from tito_project.configuration import Configuration
from trainer_export.forests.build import forest_of
from trainer_export.forests.describe import described
from trainer_export.forests.drift import DriftCache
from trainer_export.forests.load import Wanted, load_sessions
from trainer_export.forests.replay import needed, with_payloads
from trainer_export.forests.rows import StoredSession
from trainer_export.handed import Handed, enter
from trainer_export.samples.arguments import SamplesArguments
from trainer_export.samples.cache import SampleCache
from trainer_export.samples.codec import encode_json, encode_samples
from trainer_export.samples.forest import leaves_of
from trainer_export.samples.hooks import resolve_hooks
from trainer_export.samples.identity import sample_ids
from trainer_export.samples.payload import samples_payload
from trainer_export.samples.rewards import number_of
from trainer_export.samples.rules import AssemblyRules
from trainer_export.samples.sample import Sample
from trainer_export.samples.values import SessionForest

T = TypeVar("T")

_THREADS = 2
_CACHED_TOKENS = 4_000_000


@dataclass(frozen=True, slots=True)
class SamplesAnswer:
    """An encoded payload."""

    body: bytes
    content_type: str


class SamplesService:
    """Samples of the sessions of this process's database."""

    def __init__(self, db: Database, configuration: Configuration) -> None:
        """Raises ValueError for hooks that do not resolve."""
        self._db = db
        self._configuration = configuration
        self._hooks = resolve_hooks(configuration.sample_picker, configuration.sample_postprocessor)
        self._samples = SampleCache(_CACHED_TOKENS)
        self._drift = DriftCache()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="samples")

    def close(self) -> None:
        """Let go of the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def answer(
        self, settings: SessionSettings, renderer: Renderer, arguments: SamplesArguments, *, as_json: bool
    ) -> SamplesAnswer:
        """The samples of a session. Raises SessionNotFound and SamplesFailed."""
        found = await load_sessions(self._db, [settings.id], Wanted(messages=True, tools=True))
        if not found or found[0].session.deleted:
            raise SessionNotFound(settings.id.hex)
        rules = assembly_rules(renderer, self._configuration)
        stored, forest = await self._forest(found[0], replace(rules, max_seq_len=arguments.max_seq_len))
        if self._configuration.debug_messages:
            forest = await self._with_messages(settings, forest)
        work = partial(self._assembled, stored, forest, renderer, arguments, as_json)
        answer, handed = await self._run(work)
        async with self._db.transaction() as transaction:
            await enter(transaction, handed, "http")
        return answer

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def _forest(
        self, stored: StoredSession, rules: AssemblyRules
    ) -> tuple[StoredSession, SessionForest]:
        """The session with its forest, and with the replay payloads that its samples hand out."""
        forest = await self._run(partial(forest_of, stored))
        if not stored.sides:
            return stored, forest
        wanted = await self._run(partial(needed, forest, rules, None))
        (stored,) = await with_payloads(self._db, [stored], [wanted])
        return stored, await self._run(partial(forest_of, stored))

    async def _with_messages(self, settings: SessionSettings, forest: SessionForest) -> SessionForest:
        """Messages of each leaf's own turn as the client sent them, with the reply."""
        texts = {leaf.last.seq: await self._messages(settings, leaf.last.seq) for leaf in leaves_of(forest)}
        turns = tuple(replace(turn, messages_json=texts.get(turn.seq)) for turn in forest.turns)
        return replace(forest, turns=turns)

    async def _messages(self, settings: SessionSettings, seq: int) -> str:
        turns = await read.load_turns(self._db, settings.id, seq)
        stored = await attach.load_path_messages(self._db, settings.id, seq)
        reply = reading.stored_messages(stored[-1:])
        return dumps([*list(reading.raw_requests(turns, stored))[-1], *reply]).decode()

    def _assembled(
        self,
        stored: StoredSession,
        forest: SessionForest,
        renderer: Renderer,
        arguments: SamplesArguments,
        as_json: bool,
    ) -> tuple[SamplesAnswer, list[Handed]]:
        whole = described(stored, forest, renderer, self._drift)
        rules = assembly_rules(renderer, self._configuration)
        payload = samples_payload(whole, arguments, self._hooks, rules, self._samples)
        if as_json:
            answer = SamplesAnswer(encode_json(payload), "application/json")
        else:
            answer = SamplesAnswer(encode_samples(payload), "application/octet-stream")
        ids = sample_ids(forest.session_id, payload.samples)
        pairs = zip(payload.samples, ids, strict=True)
        return answer, [_handed(stored, forest, sample, id) for sample, id in pairs]


def _handed(stored: StoredSession, forest: SessionForest, sample: Sample, sample_id: str) -> Handed:
    return Handed(
        session_id=stored.session.id,
        sample_id=sample_id,
        leaf=sample.leaf.last.seq,
        known=stored.known,
        rollout_id=forest.rollout_id or forest.session_id,
        group_id=forest.group_id,
        status=str(sample.status),
        tokens=len(sample.tokens),
        trained=0 if sample.loss_mask is None else int(np.count_nonzero(sample.loss_mask)),
        reward=number_of(sample.reward),
    )


def assembly_rules(renderer: Renderer, configuration: Configuration) -> AssemblyRules:
    """What assembling depends on besides the leaf."""
    return AssemblyRules(
        decode=renderer.decode,
        max_trim_tokens=renderer.max_trim_tokens,
        r3_layers=configuration.r3_layers,
        additional_r3=configuration.addition_r3,
        debug_messages=configuration.debug_messages,
    )
