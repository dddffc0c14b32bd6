"""`native`: everything that is known of a row. In JSON the documents of the native schema; in Parquet the
same, with JSON texts where a value has no fixed type.
"""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from sessions_app.json_text import loads, text_of
from trainer_export.samples.rows import SCHEMA, SampleRow, packed_rows
from trainer_export.samples.validate import problems
from trainer_export.samples.values import JsonObject, Reward
from trainer_export.shapes.base import Place, Row, Shape, shape
from trainer_export.shapes.columns import Column, Kind

_REWARD = (
    Column("name", Kind.TEXT, "what was judged"),
    Column("value", Kind.NUMBER, "as reported"),
    Column("weight", Kind.NUMBER, "its share in the row's reward"),
    Column("source", Kind.TEXT, "who reported it"),
)

_TURN = (
    Column("seq", Kind.INTEGER, "the node's id"),
    Column("parent", Kind.INTEGER, "the node it continues", optional=True),
    Column("response_id", Kind.TEXT, "the engine's id of the reply", optional=True),
    Column("prompt_length", Kind.INTEGER, "ids fed; where its completion begins in `tokens`"),
    Column("completion_length", Kind.INTEGER, "ids sampled"),
    Column("kept", Kind.INTEGER, "sampled ids that stand in the row"),
    Column("trained", Kind.INTEGER, "sampled ids that the row trains"),
    Column("finish_reason", Kind.TEXT, "why the engine stopped", optional=True),
    Column("weight_version", Kind.JSON, "weights, as the engine reported them", optional=True),
    Column("weight_version_dispatch", Kind.TEXT, "weights, as the server believed", optional=True),
    Column("agent", Kind.TEXT, "label of the agent"),
    Column("rewards", Kind.RECORDS, "rewards of this very turn", fields=_REWARD),
)

COLUMNS = (
    Column("sample_id", Kind.TEXT, "`session:leaf`, the same at every export"),
    Column("session_id", Kind.TEXT, "32 hex digits"),
    Column("rollout_id", Kind.TEXT, "the session's own id where it was given none"),
    Column("group_id", Kind.TEXT, "rollouts of one prompt", optional=True),
    Column("attempt_id", Kind.TEXT, "which try of the rollout", optional=True),
    Column("labels", Kind.JSON, "labels of the session"),
    Column("leaf", Kind.INTEGER, "seq of the leaf"),
    Column("path", Kind.IDS, "seqs from the root to the leaf"),
    Column("root_class", Kind.TEXT, "`main`, `subagent`, …", optional=True),
    Column("agent", Kind.TEXT, "label of the agent that sent the leaf's request"),
    Column("status", Kind.TEXT, "`completed`, `truncated`, `aborted` or `pending`"),
    Column("stopped_at", Kind.INTEGER, "turn that ended the row before its path", optional=True),
    Column("stopped_reason", Kind.TEXT, "why", optional=True),
    Column("tokens", Kind.IDS, "prompt and response"),
    Column("response_length", Kind.INTEGER, "tokens from the first completion on"),
    Column("loss_mask", Kind.MASK, "per response token: 1 = trained, and proven"),
    Column("logprobs", Kind.DOUBLES, "per response token, as sampled; 0.0 where nothing was"),
    Column("response", Kind.TEXT, "text of the response"),
    Column("reward", Kind.JSON, "a number, or whatever the driver gave", optional=True),
    Column("rewards", Kind.RECORDS, "what was reported for session and leaf", fields=_REWARD),
    Column("weight_versions", Kind.JSON, "one per merged turn that reported one"),
    Column("turns", Kind.RECORDS, "every turn of the path", fields=_TURN),
    Column("generated", Kind.INTEGER, "ids sampled on the path"),
    Column("trained", Kind.INTEGER, "ids trained by this row"),
    Column("masked", Kind.JSON, "generated ids that the row does not train, by reason"),
    Column("unsampled", Kind.INTEGER, "positions that a hook wanted to train though nothing was sampled"),
    Column("cached_tokens", Kind.INTEGER, "prompt ids in the engine's prefix cache"),
    Column("prompt_tokens", Kind.INTEGER, "prompt ids as the engine counted"),
    Column("speculative", Kind.JSON, "counters of speculative decoding", optional=True),
    Column("metadata", Kind.JSON, "the driver's metadata, lifecycle, healer counters, history causes"),
    Column("routed_experts", Kind.ROWS, "replay rows", optional=True),
    Column("indexer_topk", Kind.ROWS, "replay rows", optional=True),
    Column("leaf_index", Kind.INTEGER, "place among the rows of the rollout"),
    Column("leaf_count", Kind.INTEGER, "rows of the rollout"),
    Column("rollout_weight", Kind.NUMBER, "1 / leaf_count: weigh by it, and each rollout counts once"),
)


def _cut(row: SampleRow, place: Place) -> list[Row]:
    values: JsonObject = {column.name: getattr(row, column.name) for column in COLUMNS}
    values["labels"], values["masked"] = dict(row.labels), dict(row.masked)
    values["path"] = np.asarray(row.path, np.int32)
    values["weight_versions"] = list(row.weight_versions)
    values["rewards"] = _rewards(row.rewards)
    values["turns"] = [asdict(turn) | {"rewards": _rewards(turn.rewards)} for turn in row.turns]
    values["speculative"] = asdict(row.speculative) if row.speculative else None
    return [values]


def _rewards(rewards: tuple[Reward, ...]) -> list[JsonObject]:
    return [asdict(reward) for reward in rewards]


def document(row: Row) -> JsonObject:
    """A row as a document of the native schema, whether cut just now or read back from Parquet."""
    values: JsonObject = {"schema": SCHEMA}
    values |= {column.name: _plain(column, row[column.name]) for column in COLUMNS}
    return values


def _plain(column: Column, value: Any) -> Any:
    if value is None:
        return None
    match column.kind:
        case Kind.RECORDS:
            return [{field.name: _plain(field, one[field.name]) for field in column.fields} for one in value]
        case Kind.ROWS:
            return packed_rows(value)
        case _:
            return value.tolist() if isinstance(value, np.ndarray) else value


def _check(row: Row) -> Iterator[str]:
    yield from problems(loads(text_of(document(row)).encode()))


NATIVE = shape(Shape("native", SCHEMA, "everything that is known of a row", COLUMNS, _cut, _check))
