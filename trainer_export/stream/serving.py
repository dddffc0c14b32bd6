"""Groups as rows for a consumer: find, lease, assemble, drop what is too old, answer."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID, uuid4

from sessions_app.errors import InvalidArgument
from sessions_app.json_text import dumps
from sessions_app.rendering.protocol import Renderer
from sessions_app.store.pool import Database
from sessions_app.turns.profiles import Profiles
from tito_project.configuration import Configuration
from trainer_export import handed
from trainer_export.arguments import Arguments
from trainer_export.jobs.filtering import as_version
from trainer_export.jobs.filters import Filters
from trainer_export.jobs.report import Tally
from trainer_export.jobs.request import ExportRules
from trainer_export.jobs.rows import (
    FROZEN_COLUMNS,
    POSITION_BITS,
    ROW_BITS,
    Frozen,
    Making,
    PlacedRow,
    frozen_from,
    made_rows,
)
from trainer_export.jobs.shard import ledger_entry
from trainer_export.samples.hooks import resolve_hooks
from trainer_export.shapes import SHAPES, Shape
from trainer_export.shapes.base import Place
from trainer_export.stream import leases, units
from trainer_export.stream.leases import Leased
from trainer_export.writers.values import json_row

_INPUTS = (
    f"SELECT f.handout_id, {FROZEN_COLUMNS} WHERE f.handout_id = ANY(%s) ORDER BY f.handout_id, f.position"
)
_PROFILES = """
    SELECT DISTINCT p.name, p.weight_version
    FROM trainer_export_frozensession f
    JOIN sessions_app_session s ON s.id = f.session_id JOIN sessions_app_modelprofile p ON p.id = s.profile_id
    WHERE f.handout_id = ANY(%s)
"""
_POLL_S = 0.5
_INDEX_BITS = POSITION_BITS + ROW_BITS
NO_ROWS = "no rows: its sessions have no turns, or hooks kept nothing of them"
_AT_A_TIME = 2
"""Groups assembled at once; threads are left for turns."""
_KEYS = (
    "cursor", "limit", "lease_s", "wait_s", "consumer", "shape", "rewarded", "min_weight_version",
    "max_staleness",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class StreamRequest:
    """What a consumer asks for."""

    cursor: int = 0
    """Only units numbered higher."""
    limit: int = 1
    lease_s: float = 300.0
    wait_s: float = 0.0
    """How long to wait for something to hand out."""
    consumer: str = ""
    shape: str = "native"
    rewarded: bool = False
    """Only groups each of whose rollouts has a reward."""
    min_weight_version: int | None = None
    """Groups with a token sampled by older weights are dropped."""
    max_staleness: int | None = None
    """The same, counted back from the weights the profile serves now."""

    @classmethod
    def of(cls, query: dict[str, str]) -> "StreamRequest":
        """The request of a query string. Raises InvalidArgument."""
        Arguments(query).refuse_unknown(_KEYS)
        typed = Arguments({name: _typed(name, text) for name, text in query.items()})
        return cls(
            cursor=typed.integer("cursor", most=2**62) or 0,
            limit=typed.integer("limit", least=1, most=64) or 1,
            lease_s=_seconds(typed, "lease_s", 300.0, most=86_400.0),
            wait_s=_seconds(typed, "wait_s", 0.0, most=60.0),
            consumer=typed.text("consumer", "") or "",
            shape=typed.choice("shape", tuple(SHAPES), "native"),
            rewarded=typed.flag("rewarded"),
            min_weight_version=typed.integer("min_weight_version", most=2**62),
            max_staleness=typed.integer("max_staleness"),
        )


def _typed(name: str, text: str) -> Any:
    if name in ("consumer", "shape"):
        return text
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text) if text.lstrip("-").isdigit() else float(text)
    except ValueError:
        return text


def _seconds(typed: Arguments, name: str, default: float, *, most: float) -> float:
    value = typed.number(name, default)
    if value is None or not 0 <= value <= most:
        raise InvalidArgument(f"{name} must be a number from 0 to {most:g}")
    return value


@dataclass(slots=True)
class _Answer:
    """What is handed out so far."""

    lease: UUID
    groups: list[dict[str, Any]]
    dropped: list[dict[str, Any]]
    cursor: int
    leased_until: str | None = None


class StreamService:
    """Streams of this process's database."""

    def __init__(self, db: Database, profiles: Profiles, configuration: Configuration) -> None:
        """Raises ValueError for hooks that do not resolve."""
        self._db = db
        self._profiles = profiles
        self._hands = asyncio.Semaphore(_AT_A_TIME)
        rules = ExportRules(
            picker=configuration.sample_picker,
            postprocessor=configuration.sample_postprocessor,
            fork_threshold_tokens=configuration.fork_threshold_tokens,
        )
        self._making = Making(
            configuration=configuration,
            renderer_of=_unknown,
            hooks=resolve_hooks(rules.picker, rules.postprocessor),
            rules=rules,
            filters=Filters(),
            weights_now={},
            frozen_at=None,
        )

    async def answer(self, request: StreamRequest) -> bytes:
        """The reply as JSON. Waits for the first unit as long as the request says."""
        answer = _Answer(uuid4(), [], [], request.cursor)
        deadline = time.monotonic() + request.wait_s
        while True:
            await units.find(self._db)
            await self._fill_or_give_back(request, answer)
            if answer.groups or time.monotonic() >= deadline:
                break
            await asyncio.sleep(_POLL_S)
        return await asyncio.to_thread(_json, answer)

    async def _fill_or_give_back(self, request: StreamRequest, answer: _Answer) -> None:
        """What a request that fails, or goes away, had leased is the next one's at once."""
        try:
            await self._fill(request, answer)
        except BaseException:
            await asyncio.shield(leases.give_back_all(self._db, answer.lease))
            raise

    async def _fill(self, request: StreamRequest, answer: _Answer) -> None:
        """Hand out until the limit is reached or nothing is left; what is dropped makes room."""
        while len(answer.groups) < request.limit:
            leased = await leases.claim(
                self._db,
                answer.lease,
                consumer=request.consumer,
                cursor=request.cursor,
                limit=request.limit - len(answer.groups),
                lease_s=request.lease_s,
                rewarded=request.rewarded,
            )
            if not leased:
                return
            await self._hand_out(request, leased, answer)

    async def _hand_out(self, request: StreamRequest, leased: Sequence[Leased], answer: _Answer) -> None:
        ids = [one.id for one in leased]
        making = await self._made_with(request, ids)
        inputs: dict[int, list[Frozen]] = {id: [] for id in ids}
        for id, *frozen in await self._db.fetch_all(_INPUTS, (ids,)):
            inputs[id].append(frozen_from(frozen))
        for one in leased:
            tally = Tally()
            async with self._hands:
                rows = await self._rows(inputs[one.id], making, tally)
            answer.cursor = max(answer.cursor, one.id)
            reason = too_old(rows, making.weights_now, request) if rows else _empty(tally)
            if reason is not None:
                await leases.drop(self._db, answer.lease, one.id, reason)
                answer.dropped.append({"id": one.id, "unit": one.unit, "reason": reason})
                continue
            async with self._db.transaction() as transaction:
                await handed.enter(transaction, [ledger_entry(row) for row in rows], "stream")
            answer.leased_until = one.leased_until.isoformat()
            answer.groups.append(_group(one, SHAPES[request.shape], rows))

    async def _made_with(self, request: StreamRequest, ids: list[int]) -> Making:
        renderers: dict[str, Renderer] = {}
        weights: dict[str, int] = {}
        for name, text in await self._db.fetch_all(_PROFILES, (ids,)):
            renderers[name] = (await self._profiles.get(name)).renderer
            version = as_version(text)
            if version is not None:
                weights[name] = version
            elif request.max_staleness is not None:
                raise InvalidArgument(f"max_staleness: profile {name!r} names no numeric weight version")
        return replace(self._making, renderer_of=renderers.__getitem__, weights_now=weights)

    async def _rows(self, inputs: list[Frozen], making: Making, tally: Tally) -> list[PlacedRow]:
        return [row async for batch in made_rows(self._db, inputs, making, tally) for row in batch]


def _empty(tally: Tally) -> str:
    """Why a group has no rows."""
    if not tally.failures:
        return NO_ROWS
    return "no rows: " + "; ".join(f"{one['session']}: {one['said']}" for one in tally.failures)


def _unknown(profile: str) -> Renderer:
    raise KeyError(profile)


def too_old(rows: Sequence[PlacedRow], weights_now: Mapping[str, int], request: StreamRequest) -> str | None:
    """Why a group is too old to train on; None if it is not."""
    least = request.min_weight_version
    if request.max_staleness is not None and weights_now:
        oldest = min(weights_now.values()) - request.max_staleness
        least = oldest if least is None else max(least, oldest)
    if least is None:
        return None
    for one in rows:
        for turn in one.row.turns:
            version = as_version(turn.weight_version)
            if turn.trained and (version is None or version < least):
                return f"weight version {turn.weight_version!r} of {one.row.sample_id} is older than {least}"
    return None


def _placed(place: Place, handout: int) -> Place:
    """The same among all groups that the stream ever hands out: places within a group begin at 0."""
    return Place(
        index=(handout << _INDEX_BITS) + place.index,
        group_index=handout,
        rollout_index=(handout << POSITION_BITS) + place.rollout_index,
    )


def _group(leased: Leased, shape: Shape, rows: Sequence[PlacedRow]) -> dict[str, Any]:
    cut = [row for one in rows for row in shape.cut(one.row, _placed(one.place, leased.id))]
    return {
        "id": leased.id,
        "unit": leased.unit,
        "group_id": leased.group_id,
        "late": leased.late,
        "completed_at": leased.completed_at.isoformat(),
        "deliveries": leased.deliveries,
        "rows": [json_row(shape, row) for row in cut],
    }


def _json(answer: _Answer) -> bytes:
    return dumps(
        {
            "groups": answer.groups,
            "dropped": answer.dropped,
            "lease": answer.lease.hex if answer.groups else None,
            "leased_until": answer.leased_until,
            "cursor": answer.cursor,
        }
    )
