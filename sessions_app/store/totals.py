"""Sums over all sessions, for the metrics. One statement a table, not for the serving path."""

from dataclasses import dataclass

from sessions_app.store import leases
from sessions_app.store.pool import Executor


@dataclass(frozen=True, slots=True)
class Totals:
    """What the whole forest adds up to."""

    turns: int
    healed_turns: int
    healed_prefix_tokens: int
    nonlinear: int
    close_unresolved: int
    forks: int
    rollbacks: int
    generated_tokens: int
    prompt_tokens: int
    added_tokens: int
    events: dict[tuple[str, str], int]
    """By kind and cause."""
    records: dict[str, int]
    """By state."""
    sessions: dict[str, int]
    """By status."""
    processes: dict[str, int]
    """Leases of web processes: `live`, and `expired` ones that nobody has given up yet."""
    drift: dict[str, int]
    """Audited paths by outcome."""
    drift_classes: dict[str, int]
    """Audited paths by class of difference; a path may count under several."""


_SUMMED = {
    "turns": "next_seq",
    "healed_turns": "healed_turns",
    "healed_prefix_tokens": "healed_prefix_tokens",
    "nonlinear": "nonlinear",
    "close_unresolved": "close_unresolved",
    "forks": "forks",
    "rollbacks": "rollbacks",
    "generated_tokens": "generated_tokens",
    "prompt_tokens": "prompt_tokens",
    "added_tokens": "added_tokens",
}
"""Field of Totals: column of the session."""

_DRIFT_CLASSES = {
    **{
        name: f"{name} > 0"
        for name in ("special_token_count", "special_token_type", "assistant_text", "non_assistant_text")
    },
    **{name: name for name in ("template_mismatch", "retoken_mismatch", "others_mismatch")},
}
"""Class: what a finding of it fulfils."""


async def load_totals(db: Executor) -> Totals:
    """The sums as they are now."""
    columns = ", ".join(f"coalesce(sum({column}), 0)::bigint" for column in _SUMMED.values())
    sums = await db.fetch_one(f"SELECT {columns} FROM sessions_app_session", ())
    assert sums is not None
    events = await db.fetch_all(
        "SELECT kind, cause, count(*) FROM sessions_app_historyevent GROUP BY kind, cause", ()
    )
    records = await db.fetch_all("SELECT state, count(*) FROM sessions_app_record GROUP BY state", ())
    sessions = await db.fetch_all("SELECT status, count(*) FROM sessions_app_session GROUP BY status", ())
    drift = await db.fetch_all("SELECT outcome, count(*) FROM sessions_app_driftfinding GROUP BY outcome", ())
    return Totals(
        **dict(zip(_SUMMED, sums, strict=True)),
        events={(kind, cause): count for kind, cause, count in events},
        records=dict(records),
        sessions=dict(sessions),
        processes=await leases.count(db),
        drift=dict(drift),
        drift_classes=await _drift_classes(db),
    )


async def _drift_classes(db: Executor) -> dict[str, int]:
    """Over the paths that differ at all."""
    counts = ", ".join(f"count(*) FILTER (WHERE {condition})" for condition in _DRIFT_CLASSES.values())
    row = await db.fetch_one(
        f"SELECT {counts} FROM sessions_app_driftfinding WHERE outcome IN ('expected', 'defect')", ()
    )
    assert row is not None
    return dict(zip(_DRIFT_CLASSES, row, strict=True))
