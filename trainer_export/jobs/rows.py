"""Rows of frozen sessions: load, assemble, prove, weigh. What streams and shards have in common.

Sessions are read in batches of whole rollouts, because weights need all rows of a rollout at once; a batch
is closed by tokens, so memory is bounded by the largest rollout.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import groupby
from typing import Any
from uuid import UUID

from sessions_app.errors import SamplesFailed
from sessions_app.json_text import loads
from sessions_app.rendering.protocol import Renderer
from sessions_app.store.pool import Executor
from tito_project.configuration import Configuration
from trainer_export.forests.build import forest_of
from trainer_export.forests.describe import described
from trainer_export.forests.drift import DriftCache
from trainer_export.forests.load import Wanted, load_sessions
from trainer_export.forests.replay import Needed, needed, with_replay
from trainer_export.forests.rows import SessionRow, StoredSession
from trainer_export.handed import Known
from trainer_export.jobs.filtering import FilteredPicker, filtered, held_back, window_of
from trainer_export.jobs.filters import Filters
from trainer_export.jobs.report import Tally
from trainer_export.jobs.request import ExportRules
from trainer_export.samples.arguments import SamplesArguments
from trainer_export.samples.hooks import MOST_ROWS, Hooks
from trainer_export.samples.native import SessionRows, session_rows
from trainer_export.samples.rows import SampleRow
from trainer_export.samples.values import SessionForest
from trainer_export.samples.weights import weigh
from trainer_export.serving import assembly_rules
from trainer_export.shapes.base import Place

_BATCH_TOKENS = 1_000_000
_BATCH_SESSIONS = 256
POSITION_BITS = 20
"""Bits that a session's place takes in an export, or in a group."""
ROW_BITS = (MOST_ROWS - 1).bit_length()
"""Bits of a row's number that count the rows of one session."""


@dataclass(frozen=True, slots=True)
class Frozen:
    """One frozen session."""

    position: int
    session_id: UUID
    unit: str
    rollout: str
    next_seq: int
    active_seq: int | None
    finished: bool
    healer: tuple[int, int, int, int]
    tokens: int | None
    """How much there is to read, replay rows counted as the tokens whose memory they take; None = the session
    is gone."""


def frozen_from(row: Sequence[Any]) -> Frozen:
    """A row of FROZEN_COLUMNS."""
    *values, healer, tokens = row
    values += [tuple(loads(healer.encode())), tokens]
    return Frozen(*values)


FROZEN_COLUMNS = """
    f.position, f.session_id, f.unit, f.rollout_id, f.next_seq, f.active_seq, f.finished, f.healer,
    s.added_tokens + s.generated_tokens + (
        SELECT coalesce(sum(p.prefix_bytes + octet_length(p.payload)), 0)::bigint / 32
        FROM sessions_app_sidepayload p
        WHERE p.session_id = s.id AND (p.start_row IS NOT NULL OR NOT EXISTS (
            SELECT 1 FROM sessions_app_node n
            JOIN sessions_app_sidepayload c
                ON c.session_id = n.session_id AND c.node_seq = n.seq AND c.kind = p.kind
            WHERE n.session_id = p.session_id AND n.parent_seq = p.node_seq)))
    FROM trainer_export_frozensession f LEFT JOIN sessions_app_session s ON s.id = f.session_id
"""


@dataclass(frozen=True, slots=True)
class Making:
    """What rows depend on besides their sessions."""

    configuration: Configuration
    renderer_of: Callable[[str], Renderer]
    """The renderer of a profile; slow at first."""
    hooks: Hooks
    rules: ExportRules
    filters: Filters
    weights_now: Mapping[str, int]
    frozen_at: datetime | None
    drift: DriftCache = field(default_factory=DriftCache)


@dataclass(frozen=True, slots=True)
class PlacedRow:
    """A row and where it stands."""

    row: SampleRow
    place: Place
    known: Known


def batches(inputs: Sequence[Frozen]) -> Iterator[list[Frozen]]:
    """Consecutive whole rollouts, as many as are read at once."""
    batch: list[Frozen] = []
    held = 0
    for _, rollout in groupby(inputs, key=lambda one: (one.unit, one.rollout)):
        members = list(rollout)
        size = sum(one.tokens or 0 for one in members)
        if batch and (held + size > _BATCH_TOKENS or len(batch) + len(members) > _BATCH_SESSIONS):
            yield batch
            batch, held = [], 0
        batch += members
        held += size
    if batch:
        yield batch


async def made_rows(
    db: Executor, inputs: Sequence[Frozen], making: Making, tally: Tally
) -> AsyncIterator[list[PlacedRow]]:
    """The rows of frozen sessions, batch by batch in order. Assembled in a thread."""
    first_of_unit: dict[str, int] = {}
    for one in inputs:
        first_of_unit.setdefault(one.unit, one.position)
    for batch in batches(inputs):
        stored = await load_batch(db, batch, making)
        yield await asyncio.to_thread(_rows, batch, stored, making, tally, first_of_unit)


async def load_batch(db: Executor, batch: Sequence[Frozen], making: Making) -> dict[UUID, StoredSession]:
    """The sessions of a batch as they stood when they were frozen; what is gone is absent."""
    continuations = bool(making.rules.fork_threshold_tokens)
    wanted = Wanted(
        messages=making.rules.drift or continuations,
        tools=making.rules.drift,
        rewards_until=making.frozen_at,
    )
    loaded = await load_sessions(db, [one.session_id for one in batch], wanted)
    found = {one.session.id: one for one in loaded}
    asked = [thawed(found[one.session_id], one) for one in batch if one.session_id in found]
    whole = await with_replay(db, asked, partial(_payloads, making))
    return {one.session.id: one for one in whole}


def _payloads(making: Making, stored: StoredSession) -> Needed:
    forest = forest_of(stored, continuations=bool(making.rules.fork_threshold_tokens))
    renderer = making.renderer_of(stored.session.profile)
    rules = replace(assembly_rules(renderer, making.configuration), max_seq_len=making.rules.max_seq_len)
    return needed(forest, rules, making.rules.fork_threshold_tokens)


def thawed(stored: StoredSession, frozen: Frozen) -> StoredSession:
    """A session without what happened to it after it was frozen."""
    session: SessionRow = replace(
        stored.session,
        next_seq=frozen.next_seq,
        active_seq=frozen.active_seq,
        finish_said=stored.session.finish_said and frozen.finished,
        finish_metadata=stored.session.finish_metadata if frozen.finished else None,
        healed_turns=frozen.healer[0],
        healed_prefix_tokens=frozen.healer[1],
        nonlinear=frozen.healer[2],
        close_unresolved=frozen.healer[3],
    )
    nodes = [node for node in stored.nodes if node.seq < frozen.next_seq]
    return replace(stored, session=session, nodes=nodes)


def _rows(
    batch: Sequence[Frozen],
    stored: Mapping[UUID, StoredSession],
    making: Making,
    tally: Tally,
    first_of_unit: Mapping[str, int],
) -> list[PlacedRow]:
    placed: list[PlacedRow] = []
    for _, rollout in groupby(batch, key=lambda one: (one.unit, one.rollout)):
        members = list(rollout)
        rows: list[PlacedRow] = []
        for one in members:
            place = Place(0, first_of_unit[one.unit], members[0].position)
            made = _session_rows(one, stored.get(one.session_id), making, tally)
            rows += [
                PlacedRow(row, _numbered(place, one, at), stored[one.session_id].known)
                for at, row in enumerate(made)
            ]
        weighed = weigh([one.row for one in rows])
        placed += [replace(one, row=row) for one, row in zip(rows, weighed, strict=True)]
    for made_row in placed:
        tally.add_row(made_row.row)
    return placed


def _numbered(place: Place, frozen: Frozen, at: int) -> Place:
    return replace(place, index=(frozen.position << ROW_BITS) + at)


def _session_rows(
    frozen: Frozen, stored: StoredSession | None, making: Making, tally: Tally
) -> list[SampleRow]:
    """The rows of one session, and what became of it entered into the tally. Never raises for its content."""
    if stored is None or len(stored.nodes) < frozen.next_seq:
        tally.drop("purged")
        return []
    profile = stored.session.profile
    window = window_of(making.filters, making.weights_now.get(profile))
    hooks, picker = filtered(making.hooks, making.filters, window)
    try:
        forest = _forest(stored, making)
        made = _assembled(forest, hooks, picker, making, profile)
    except SamplesFailed as error:
        completions = [node.completion.size for node in stored.nodes]
        tally.refuse(frozen.session_id.hex, completions, str(error))
        return []
    tally.add(forest, made.report, picker.rejected, {seq for row in made.rows for seq in row.path})
    return made.rows


def _forest(stored: StoredSession, making: Making) -> SessionForest:
    forest = forest_of(stored, continuations=bool(making.rules.fork_threshold_tokens))
    renderer = making.renderer_of(stored.session.profile)
    return described(stored, forest, renderer, making.drift if making.rules.drift else None)


def _assembled(
    forest: SessionForest, hooks: Hooks, picker: FilteredPicker, making: Making, profile: str
) -> SessionRows:
    rules = assembly_rules(making.renderer_of(profile), making.configuration)
    made = session_rows(
        forest,
        hooks,
        rules,
        SamplesArguments(making.rules.max_seq_len),
        fork_threshold_tokens=making.rules.fork_threshold_tokens,
    )
    return held_back(made, picker) if forest.policy == "rollback" else made
