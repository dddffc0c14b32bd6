"""A dump back as rows, and rows into a database: the whole session or nothing.

Not the serving path: this is where a forest comes in that other processes made. What it says is not believed:
lengths and digests are checked before a row is written.
"""

import base64
import gzip
import json
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from psycopg import sql

from sessions_app.errors import InvalidArgument, InvalidJson
from sessions_app.history.context import ROOT, context_digest
from sessions_app.json_text import loads
from sessions_app.packing import unpack_ids
from trainer_export.dumps.tables import SCHEMA, SESSION, TABLES, Table
from trainer_export.traces.otlp.received import SpanEvent, SpanLink

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Dump:
    """A dump in memory."""

    session_id: UUID
    profile: str
    session: Row
    tables: dict[str, list[Row]]


@dataclass(frozen=True, slots=True)
class Loaded:
    """What came of loading one."""

    session_id: UUID
    profile: str
    """The profile it has here: that of its own name, or `default` where there is none."""
    nodes: int


def parse(data: bytes) -> Dump:
    """The rows of a dump. Raises InvalidArgument for what is none, or was made by a newer server."""
    try:
        lines = gzip.decompress(data).splitlines()
        header, *rest = [loads(line) for line in lines]
    except (OSError, EOFError, zlib.error, InvalidJson, ValueError) as error:
        raise InvalidArgument(f"not a session dump: {error}") from None
    if not isinstance(header, dict) or header.get("schema") != SCHEMA:
        raise InvalidArgument(f"not a session dump of version {SCHEMA}")
    try:
        tables: defaultdict[str, list[Row]] = defaultdict(list)
        for line in rest:
            tables[line["table"]].append({name: _decoded(value) for name, value in line["row"].items()})
        (session,) = tables.pop(SESSION.name)
        dump = Dump(UUID(header["session_id"]), str(header["profile"]), session, dict(tables))
        _check(dump)
        _check_spans(dump)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidArgument(f"the session dump is damaged: {type(error).__name__}: {error}") from None
    return dump


def _decoded(value: Any) -> Any:
    if isinstance(value, dict):
        if "$b" in value:
            return base64.b64decode(value["$b"])
        return datetime.fromisoformat(value["$t"])
    return value


def _check(dump: Dump) -> None:
    """Every node's ids are those of which its commit took the digest."""
    checkpoints = {row["node_seq"]: row for row in dump.tables.get("checkpoint", [])}
    digests: dict[int | None, bytes] = {None: ROOT}
    for node in dump.tables.get("node", []):
        tokens = checkpoints[node["seq"]]
        prompt, completion = unpack_ids(tokens["prompt_delta"]), unpack_ids(tokens["completion"])
        above = digests[node.get("parent_seq")]
        digests[node["seq"]] = context_digest(above, tokens["boundary_trim"], prompt, completion)
        if digests[node["seq"]] != node["context_digest"]:
            raise ValueError(f"ids of node {node['seq']} are not those that were served")
        if len(tokens["logprobs"]) != tokens["logprob_width"] * completion.size:
            raise ValueError(f"node {node['seq']} has not one logprob per id")


def _check_spans(dump: Dump) -> None:
    """What spans hold is read again with every conversion, so it has to be readable."""
    origins = {row["digest"] for row in dump.tables.get("span_origin", [])}
    for row in dump.tables.get("span_origin", []):
        if not isinstance(json.loads(row["body"])["resource"], dict):
            raise ValueError("a resource of spans is no object")
    for row in dump.tables.get("span", []):
        if row["origin"] not in origins or not isinstance(json.loads(row["attributes"]), dict):
            raise ValueError(f"span {row['span_id']} has no resource or no attributes")
        for event in json.loads(row["events"] or "[]"):
            SpanEvent(**event)
        for link in json.loads(row["links"] or "[]"):
            SpanLink(**link)


def load(conninfo: str, dump: Dump, session_id: UUID | None = None) -> Loaded:
    """Write a session under its own id, or another. Raises InvalidArgument where it cannot be."""
    session_id = session_id or dump.session_id
    try:
        with psycopg.connect(conninfo) as connection:
            profile_id, profile = _profile(connection, dump.profile)
            session = {**dump.session, "id": session_id, "profile_id": profile_id}
            _copy(connection, SESSION, [session])
            records = _record_ids(connection, dump.tables.get("record", []))
            for table in TABLES:
                rows = _renumbered(table, dump.tables.get(table.name, []), records)
                _copy(connection, table, [{**row, "session_id": session_id} for row in rows])
    except psycopg.errors.UniqueViolation:
        raise InvalidArgument(
            f"session {session_id.hex}, or its rollout and attempt, is here already: --new-id loads it beside"
        ) from None
    except (psycopg.DataError, psycopg.IntegrityError, psycopg.ProgrammingError) as error:
        raise InvalidArgument(f"the session dump does not fit this server: {error}") from None
    return Loaded(session_id, profile, len(dump.tables.get("node", [])))


def _profile(connection: psycopg.Connection[Any], name: str) -> tuple[int, str]:
    row = connection.execute(
        "SELECT id, name FROM sessions_app_modelprofile WHERE name IN (%s, 'default') "
        "ORDER BY name = 'default' AND %s <> 'default' LIMIT 1",
        (name, name),
    ).fetchone()
    if row is None:
        raise InvalidArgument("this server has no profile yet: start it once")
    return row[0], row[1]


def _record_ids(connection: psycopg.Connection[Any], records: Sequence[Row]) -> dict[int, int]:
    """New ids for records, in their order."""
    sequence = "pg_get_serial_sequence('sessions_app_record', 'id')"
    ids = connection.execute(
        f"SELECT nextval({sequence}) FROM generate_series(1, %s)", (len(records),)
    ).fetchall()
    return {row["id"]: new[0] for row, new in zip(records, sorted(ids), strict=True)}


def _renumbered(table: Table, rows: Sequence[Row], records: dict[int, int]) -> Iterator[Row]:
    for row in rows:
        changed = dict(row)
        if table.name == "record":
            changed["id"] = records[row["id"]]
        elif row.get("record_id") is not None:
            changed["record_id"] = records[row["record_id"]]
        yield changed


def _copy(connection: psycopg.Connection[Any], table: Table, rows: Sequence[Row]) -> None:
    if not rows:
        return
    columns = sorted({name for row in rows for name in row})
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(table.table), sql.SQL(", ").join(map(sql.Identifier, columns))
    )
    with connection.cursor().copy(statement) as copy:
        for row in rows:
            copy.write_row([row.get(name) for name in columns])
