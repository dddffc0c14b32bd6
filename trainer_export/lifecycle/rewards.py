"""Rewards: values that drivers report for a session or for one node, at any time until retention.

The first report of a key wins; the same report again changes nothing, another one under the same key is a
conflict. Rows that were handed out before a reward came are marked stale.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any
from uuid import UUID

from sessions_app.errors import IdempotencyConflict, InvalidArgument, NotFound
from sessions_app.json_text import dumps
from sessions_app.store.pool import Database, Executor, Transaction
from trainer_export.arguments import MOST_TEXT, Arguments
from trainer_export.handed import lock_to_report, mark_stale

_MOST = 1000
_SHORT = 100
_KEYS = ("node", "leaf", "response_id", "name", "value", "weight", "source", "key")

_NODES = """
    SELECT n.seq, n.response_id, EXISTS (
        SELECT 1 FROM sessions_app_node c WHERE c.session_id = n.session_id AND c.parent_seq = n.seq)
    FROM sessions_app_node n
    WHERE n.session_id = %s AND (n.seq = ANY(%s::int[]) OR n.response_id = ANY(%s::text[]))
    ORDER BY n.seq
"""
_INSERT = """
    INSERT INTO sessions_app_reward (session_id, node_seq, name, value, weight, source, key, created_at)
    SELECT %(session)s, t.node, t.name, t.value, t.weight, t.source, t.key, clock_timestamp()
    FROM unnest(%(nodes)s::int[], %(names)s::text[], %(values)s::float8[], %(weights)s::float8[],
                %(sources)s::text[], %(keys)s::text[])
        WITH ORDINALITY AS t (node, name, value, weight, source, key, ordinal)
    ORDER BY t.ordinal
    ON CONFLICT (session_id, key) DO NOTHING
    RETURNING key
"""
_STORED = """
    SELECT key, node_seq, name, value, weight, source FROM sessions_app_reward
    WHERE session_id = %s AND key = ANY(%s)
"""


@dataclass(frozen=True, slots=True)
class RewardReport:
    """One reward as reported."""

    value: float
    node: int | None = None
    """Seq of the node it is for; None = the whole session (unless a response id names one)."""
    leaf: bool = False
    """The node has to be a leaf."""
    response_id: str | None = None
    name: str = "reward"
    weight: float = 1.0
    source: str = "api"
    key: str = ""
    """Idempotency key; "" = a digest of all of the above, so that equal reports are one."""


@dataclass(frozen=True, slots=True)
class Reported:
    """What became of one report."""

    key: str
    node: int | None
    created: bool


def read_reports(arguments: Arguments, idempotency_key: str | None) -> list[RewardReport]:
    """The reports of a request: one reward, or `rewards`: a list of them. Raises InvalidArgument."""
    given = arguments.any("rewards")
    if given is None:
        return [_read(arguments, idempotency_key)]
    arguments.refuse_unknown(("rewards",))
    if not isinstance(given, list) or not 0 < len(given) <= _MOST:
        raise InvalidArgument(f"rewards must be a list of 1 to {_MOST} objects")
    if idempotency_key is not None:
        raise InvalidArgument("a list of rewards takes a key each, not an Idempotency-Key")
    return [
        _read(Arguments.of(one, f"rewards[{index}]", f"rewards[{index}]."), None)
        for index, one in enumerate(given)
    ]


def _read(arguments: Arguments, idempotency_key: str | None) -> RewardReport:
    arguments.refuse_unknown(_KEYS)
    value = arguments.number("value")
    if value is None:
        raise InvalidArgument("value must be a finite number")
    targets = [name for name in ("node", "leaf", "response_id") if arguments.given(name)]
    if len(targets) > 1:
        raise InvalidArgument(f"{' and '.join(targets)}: a reward has one target")
    leaf = arguments.integer("leaf")
    return RewardReport(
        value=value,
        node=arguments.integer("node") if leaf is None else leaf,
        leaf=leaf is not None,
        response_id=arguments.text("response_id"),
        name=_short(arguments, "name", "reward"),
        weight=arguments.number("weight", 1.0) or 0.0,
        source=_short(arguments, "source", "api"),
        key=arguments.text("key") or _checked_key(idempotency_key),
    )


def _short(arguments: Arguments, name: str, default: str) -> str:
    value = arguments.text(name, default) or default
    if len(value) > _SHORT:
        raise InvalidArgument(f"{name} must be a text of 1 to {_SHORT} characters without NUL")
    return value


def _checked_key(key: str | None) -> str:
    if key is not None and (len(key) > MOST_TEXT or "\x00" in key):
        raise InvalidArgument(f"Idempotency-Key must be a text of 1 to {MOST_TEXT} characters")
    return key or ""


async def is_kept(db: Executor, session_id: UUID) -> bool:
    """Whether a session's rows are still there, deleted or not."""
    return await db.fetch_one("SELECT 1 FROM sessions_app_session WHERE id = %s", (session_id,)) is not None


async def report(db: Database, session_id: UUID, reports: Sequence[RewardReport]) -> list[Reported]:
    """Store rewards, all or none. Raises NotFound for an unknown node, IdempotencyConflict for a known key
    with other values.
    """
    async with db.transaction() as transaction:
        await lock_to_report(transaction, session_id)
        resolved = await _resolved(transaction, session_id, reports)
        rows = await transaction.fetch_all(_INSERT, _columns(session_id, resolved))
        created = {row[0] for row in rows}
        await _check_same(transaction, session_id, resolved, created)
        if created:
            await mark_stale(transaction, session_id, "reward")
    reported = []
    for one in resolved:
        reported.append(Reported(one.key, one.node, one.key in created))
        created.discard(one.key)
    return reported


async def _resolved(
    transaction: Transaction, session_id: UUID, reports: Sequence[RewardReport]
) -> list[RewardReport]:
    """The same with node and key filled in."""
    seqs = [one.node for one in reports if one.node is not None]
    names = [one.response_id for one in reports if one.response_id is not None]
    rows = await transaction.fetch_all(_NODES, (session_id, seqs, names)) if seqs or names else []
    inner = {row[0]: row[2] for row in rows}
    by_response = {row[1]: row[0] for row in rows}
    return [_keyed(_targeted(one, inner, by_response)) for one in reports]


def _targeted(report: RewardReport, inner: dict[int, bool], by_response: dict[str, int]) -> RewardReport:
    node = report.node
    if report.response_id is not None:
        node = by_response.get(report.response_id)
        if node is None:
            raise NotFound("no node of this session has that response_id")
    if node is not None and node not in inner:
        raise NotFound(f"node not found: {node}")
    if report.leaf and node is not None and inner[node]:
        raise InvalidArgument(f"leaf: node {node} has been continued, it is no leaf")
    return replace(report, node=node)


def _keyed(report: RewardReport) -> RewardReport:
    return report if report.key else replace(report, key=_digest(report))


def _digest(report: RewardReport) -> str:
    content = [report.node, report.name, report.value, report.weight, report.source]
    return "content:" + sha256(dumps(content)).hexdigest()[:32]


def _columns(session_id: UUID, reports: Sequence[RewardReport]) -> dict[str, Any]:
    return {
        "session": session_id,
        "nodes": [one.node for one in reports],
        "names": [one.name for one in reports],
        "values": [one.value for one in reports],
        "weights": [one.weight for one in reports],
        "sources": [one.source for one in reports],
        "keys": [one.key for one in reports],
    }


async def _check_same(
    transaction: Transaction, session_id: UUID, reports: Sequence[RewardReport], created: set[str]
) -> None:
    """What a key is taken by must be what this request reports under it."""
    known = [one for one in reports if one.key not in created or _repeated(one, reports)]
    if not known:
        return
    rows = await transaction.fetch_all(_STORED, (session_id, [one.key for one in known]))
    stored = {row[0]: tuple(row[1:]) for row in rows}
    for one in known:
        if stored[one.key] != (one.node, one.name, one.value, one.weight, one.source):
            raise IdempotencyConflict(f"key {one.key!r} was used for another reward of this session")


def _repeated(one: RewardReport, reports: Sequence[RewardReport]) -> bool:
    return sum(other.key == one.key for other in reports) > 1
