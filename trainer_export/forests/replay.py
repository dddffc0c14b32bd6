"""Of the replay payloads of sessions only those are read that samples hand out: one per sample and kind,
however many turns it has (additional ones: each row once).
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from sessions_app.errors import SamplesFailed
from sessions_app.store.pool import Executor
from sessions_app.store.side import load_payloads
from trainer_export.forests.rows import StoredSession
from trainer_export.samples.assemble import payloads_needed
from trainer_export.samples.forest import leaves_of
from trainer_export.samples.reconcile import reconcile
from trainer_export.samples.rules import AssemblyRules
from trainer_export.samples.values import SessionForest

Needed = set[tuple[int, str]]
"""Node and kind of payloads."""


def needed(forest: SessionForest, rules: AssemblyRules, fork_threshold_tokens: int | None) -> Needed:
    """What the samples of all leaves hand out; nothing for those that assembling will refuse."""
    reconciled = forest if forest.healed else reconcile(forest, fork_threshold_tokens)
    found: Needed = set()
    for leaf in leaves_of(reconciled):
        with suppress(SamplesFailed):
            found |= payloads_needed(leaf, rules)
    return found


async def with_replay(
    db: Executor, sessions: Sequence[StoredSession], needed_of: Callable[[StoredSession], Needed]
) -> list[StoredSession]:
    """The sessions with the payloads they need, which is worked out in a thread."""
    wanted = [await asyncio.to_thread(needed_of, stored) if stored.sides else Needed() for stored in sessions]
    return await with_payloads(db, sessions, wanted)


async def with_payloads(
    db: Executor, sessions: Sequence[StoredSession], wanted: Sequence[Needed]
) -> list[StoredSession]:
    """The sessions with these of their payloads."""
    keys = {
        (stored.session.id, seq, kind)
        for stored, asked in zip(sessions, wanted, strict=True)
        for seq, kind in asked
    }
    found = await load_payloads(db, keys)
    return [
        replace(
            stored,
            payloads={
                (seq, kind): found[stored.session.id, seq, kind]
                for seq, kind in asked
                if (stored.session.id, seq, kind) in found
            },
        )
        if asked
        else stored
        for stored, asked in zip(sessions, wanted, strict=True)
    ]
