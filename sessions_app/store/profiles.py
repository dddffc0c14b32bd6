"""Model profiles as clients see them."""

from dataclasses import dataclass
from datetime import datetime

from sessions_app.store.pool import Executor


@dataclass(frozen=True, slots=True)
class ListedModel:
    """One profile."""

    name: str
    model: str
    """Tokenizer folder or hub name; "" = the demo tokenizer."""
    created_at: datetime


async def load_listed(db: Executor) -> list[ListedModel]:
    """All profiles by name."""
    rows = await db.fetch_all(
        "SELECT name, model, created_at FROM sessions_app_modelprofile ORDER BY name", ()
    )
    return [ListedModel(*row) for row in rows]


async def is_paused(db: Executor, name: str) -> bool:
    """Whether new generations of a profile are held."""
    row = await db.fetch_one("SELECT paused FROM sessions_app_modelprofile WHERE name = %s", (name,))
    return row is not None and row[0]


async def set_paused(db: Executor, name: str, paused: bool) -> bool:
    """Hold or release new generations of a profile; False when there is no such profile."""
    row = await db.fetch_one(
        "UPDATE sessions_app_modelprofile SET paused = %s, updated_at = now() WHERE name = %s RETURNING id",
        (paused, name),
    )
    return row is not None


async def set_weight_version(db: Executor, name: str, version: str) -> bool:
    """What the engine holds from now on; recorded with every dispatch."""
    row = await db.fetch_one(
        "UPDATE sessions_app_modelprofile SET weight_version = %s, updated_at = now() "
        "WHERE name = %s RETURNING id",
        (version, name),
    )
    return row is not None
