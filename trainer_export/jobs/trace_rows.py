"""Rows of frozen sessions for the shapes that come from traces, and the report of each trace.

Spans that arrived after the freeze are left out, so the same job gives the same rows. In mode `compat` a
rollout is its newest attempt, as the reference trains it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from sessions_app.json_text import dumps
from sessions_app.rendering.drift import RendererText
from sessions_app.store.pool import Database
from trainer_export.forests.build import history_of
from trainer_export.forests.load import Wanted, load_sessions
from trainer_export.forests.rows import StoredSession
from trainer_export.jobs.report import Tally
from trainer_export.jobs.rows import Frozen, Making, batches, thawed
from trainer_export.shapes.base import Row
from trainer_export.shapes.traced import TraceRows, TraceShape, TraceSource, placed
from trainer_export.spans.converting import TracedSession, converted
from trainer_export.spans.reading import load_traced
from trainer_export.spans.rules import BETTER, TraceRules
from trainer_export.spans.trace_report import trace_reports
from trainer_export.spans.waiting import settle_session
from trainer_export.writers import Writer

EARLIER_ATTEMPT = "earlier_attempt"

_Loaded = tuple[Frozen, TracedSession | None, StoredSession | None]


def report_name(shard: str) -> str:
    """The file with the reports of a shard's traces, one JSON object a line."""
    return f"{shard.partition('.')[0]}.traces.ndjson"


async def write_traces(
    db: Database,
    writer: Writer,
    inputs: Sequence[Frozen],
    shape: TraceShape,
    making: Making,
    tally: Tally,
    check: Callable[[], None],
    progress: Callable[[int, int], None],
    report: Path,
) -> None:
    """Write the rows of a shard and its report. `check` raises where the work is to end."""
    try:
        with report.open("wb") as lines:
            async for batch in _loaded(db, inputs, making):
                check()
                before = (tally.sessions, tally.tokens)
                rows, told = await asyncio.to_thread(_made, batch, shape, making, tally)
                await asyncio.to_thread(_append, writer, rows)
                lines.writelines(dumps(one) + b"\n" for one in told)
                progress(tally.sessions - before[0], tally.tokens - before[1])
        await asyncio.to_thread(writer.close)
    except BaseException:
        writer.abandon()
        raise


def _append(writer: Writer, rows: Sequence[Row]) -> None:
    for row in rows:
        writer.write(row)


async def _loaded(db: Database, inputs: Sequence[Frozen], making: Making) -> AsyncIterator[list[_Loaded]]:
    """Whole rollouts, as many as are read at once."""
    wanted = Wanted(messages=True, rewards_until=making.frozen_at)
    for batch in batches(inputs):
        found = await load_sessions(db, [one.session_id for one in batch], wanted)
        stored = {one.session.id: one for one in found}
        loaded: list[_Loaded] = []
        for one in batch:
            if one.session_id not in stored:
                loaded.append((one, None, None))
                continue
            await settle_session(db, one.session_id)
            session = thawed(stored[one.session_id], one)
            loaded.append((one, await load_traced(db, session, making.frozen_at), session))
        yield loaded


def _made(
    batch: Sequence[_Loaded], shape: TraceShape, making: Making, tally: Tally
) -> tuple[list[Row], list[dict[str, Any]]]:
    rows: list[Row] = []
    told: list[dict[str, Any]] = []
    for _, rollout in groupby(batch, key=lambda one: (one[0].unit, one[0].rollout)):
        made: list[Any] = []
        for session, stored in _attempts(list(rollout), making.rules.trace_rules, tally):
            source = _source(session, stored, making)
            cut = shape.rows(source)
            _count(tally, source, cut)
            made += cut.rows
            told += trace_reports(source.session, source.converted)
        rows += placed(made)
    tally.rows += len(rows)
    return rows, told


def _attempts(
    members: Sequence[_Loaded], rules: TraceRules, tally: Tally
) -> list[tuple[TracedSession, StoredSession]]:
    """The sessions of a rollout that are converted; the others are entered into the tally."""
    kept = []
    numbered = [stored.session.id for _, _, stored in members if stored and stored.session.attempt_id]
    for frozen, session, stored in members:
        if session is None or stored is None or len(stored.nodes) < frozen.next_seq:
            tally.drop("purged")
        elif rules.mode != BETTER and frozen.session_id in numbered[:-1]:
            tally.drop(EARLIER_ATTEMPT)
        else:
            kept.append((session, stored))
    return kept


def _source(session: TracedSession, stored: StoredSession, making: Making) -> TraceSource:
    rules = making.rules.trace_rules
    tokens = RendererText(making.renderer_of(stored.session.profile))
    return TraceSource(
        session, stored.session.group_id, history_of(stored), converted(session, rules), rules, tokens
    )


def _count(tally: Tally, source: TraceSource, cut: TraceRows) -> None:
    """Every generated token of the triplets is trained, or masked for a reason."""
    turns = source.turns
    generated = sum(len(turn.response_ids) for turn in turns)
    trained = sum(_trained(row) for row in cut.rows)
    left_out = sum(len(turns[index].response_ids) for index in cut.outcome.left_out)
    tally.sessions += 1
    tally.nodes += len(source.session.own)
    tally.generated_tokens += generated
    tally.trained_tokens += trained
    tally.tokens += sum(len(row["prompt_ids"]) + len(row["response_ids"]) for row in cut.rows)
    masked = {"equal_prompt": left_out, "over_the_limit": generated - trained - left_out}
    tally.masked.update({reason: count for reason, count in masked.items() if count})
    if source.converted.error is not None:
        tally.failed(source.session.session_id, source.converted.error)
    elif not cut.rows:
        tally.dropped_sessions["no_triplet"] += 1
    tally.add_trace(source.converted.report, cut.outcome)


def _trained(row: Any) -> int:
    return sum(row["loss_mask"]) if "loss_mask" in row else len(row["response_ids"])
