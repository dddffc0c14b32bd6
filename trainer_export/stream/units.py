"""What there is to hand out: complete groups, and rollouts that belong to no group of a known size.

A rollout that ends after its group was complete is a unit of its own, marked late. Units are numbered in the
order in which they completed, as far as that is known when they are found.
"""

from typing import Any

from sessions_app.store.pool import Database, Transaction

_LOCK = "SELECT pg_advisory_xact_lock(7281946500113)"
"""One search at a time, so that numbers follow completion."""

_SINCE = """
    SELECT coalesce(max(completed_at) - interval '10 minutes', 'epoch') FROM trainer_export_handout
"""
_NEW = """
    WITH touched AS (
        SELECT DISTINCT coalesce(rollout_id, replace(id::text, '-', '')) AS rollout, rollout_id, group_id
        FROM sessions_app_session WHERE finished_at >= %(since)s
    ), ended AS (
        SELECT t.rollout, t.group_id, max(s.finished_at) AS ended_at
        FROM touched t JOIN sessions_app_session s ON s.rollout_id = t.rollout_id
            AND s.group_id IS NOT DISTINCT FROM t.group_id
        GROUP BY 1, 2 HAVING bool_and(s.status <> 'open')
        UNION ALL
        SELECT t.rollout, t.group_id, s.finished_at
        FROM touched t JOIN sessions_app_session s
            ON s.id = CASE WHEN t.rollout_id IS NULL THEN t.rollout::uuid END
        WHERE s.status <> 'open'
    ), placed AS (
        SELECT e.*, g.group_size IS NOT NULL AS sized, coalesce(g.complete, false) AS complete,
            h.id IS NOT NULL AS known, f.rollout_id IS NOT NULL AS inside
        FROM ended e
        LEFT JOIN export_groups g ON g.group_id = e.group_id
        LEFT JOIN trainer_export_handout h ON h.unit = 'g:' || e.group_id
        LEFT JOIN LATERAL (SELECT rollout_id FROM trainer_export_frozensession f
            WHERE f.handout_id = h.id AND f.rollout_id = e.rollout LIMIT 1) f ON true
    ), units AS (
        SELECT 'g:' || group_id AS unit, group_id, false AS late, max(ended_at) AS completed_at
        FROM placed WHERE sized AND complete AND NOT known GROUP BY group_id
        UNION ALL
        SELECT 'r:' || coalesce(group_id, '') || ':' || rollout, group_id, sized, ended_at
        FROM placed WHERE NOT sized OR (known AND NOT inside)
    )
    INSERT INTO trainer_export_handout (unit, group_id, late, state, completed_at, consumer, deliveries)
    SELECT unit, group_id, late, 'open', completed_at, '', 0 FROM units ORDER BY completed_at, unit
    ON CONFLICT (unit) DO NOTHING RETURNING id, unit, group_id
"""
_INPUTS = """
    WITH units AS (
        SELECT * FROM unnest(%(ids)s::bigint[], %(units)s::text[], %(groups)s::text[], %(rollouts)s::text[])
            AS u (id, unit, group_id, rollout)
    ), members AS (
        SELECT u.id AS handout, u.unit, coalesce(s.rollout_id, replace(s.id::text, '-', '')) AS rollout, s.*
        FROM units u JOIN sessions_app_session s ON u.rollout IS NULL AND s.group_id = u.group_id
        UNION ALL
        SELECT u.id, u.unit, u.rollout, s.*
        FROM units u JOIN sessions_app_session s ON s.rollout_id = u.rollout
            AND s.group_id IS NOT DISTINCT FROM u.group_id
        UNION ALL
        SELECT u.id, u.unit, u.rollout, s.*
        FROM units u JOIN sessions_app_session s
            ON s.id = CASE WHEN u.rollout ~ '^[0-9a-f]{32}$' THEN u.rollout::uuid END
            AND s.rollout_id IS NULL AND s.group_id IS NOT DISTINCT FROM u.group_id
    ), ended AS (
        SELECT m.*, bool_and(m.status <> 'open') OVER (PARTITION BY m.handout, m.rollout) AS whole,
            min(m.created_at) OVER (PARTITION BY m.handout, m.rollout) AS begun
        FROM members m
    )
    INSERT INTO trainer_export_frozensession (
        handout_id, position, session_id, unit, rollout_id, next_seq, active_seq, finished, healer)
    SELECT handout, row_number() OVER (PARTITION BY handout ORDER BY begun, rollout, created_at, id) - 1, id,
        unit, rollout, next_seq, active_seq, true,
        json_build_array(healed_turns, healed_prefix_tokens, nonlinear, close_unresolved)::text
    FROM ended e WHERE whole AND NOT EXISTS (
        SELECT 1 FROM trainer_export_frozensession f JOIN trainer_export_handout h ON h.id = f.handout_id
        WHERE f.session_id = e.id AND h.group_id IS NOT DISTINCT FROM e.group_id)
"""


async def find(db: Database) -> int:
    """Enter what has finished since the last search; how many units that are."""
    async with db.transaction() as transaction:
        await transaction.execute(_LOCK, ())
        since = await transaction.fetch_one(_SINCE, ())
        assert since is not None
        found = await transaction.fetch_all(_NEW, {"since": since[0]})
        if found:
            await _freeze(transaction, found)
    return len(found)


async def _freeze(transaction: Transaction, found: list[tuple[Any, ...]]) -> None:
    await transaction.execute(
        _INPUTS,
        {
            "ids": [id for id, _, _ in found],
            "units": [unit for _, unit, _ in found],
            "groups": [group for _, _, group in found],
            "rollouts": [_rollout(unit, group) for _, unit, group in found],
        },
    )


def _rollout(unit: str, group: str | None) -> str | None:
    """The rollout of a unit that is one; None for a group."""
    prefix = f"r:{group or ''}:"
    return unit.removeprefix(prefix) if unit.startswith("r:") else None
