"""Sums over all sessions, for the metrics. One statement a table, not for the serving path."""

from dataclasses import dataclass

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
    return Totals(
        **dict(zip(_SUMMED, sums, strict=True)),
        events={(kind, cause): count for kind, cause, count in events},
        records=dict(records),
        sessions=dict(sessions),
    )
