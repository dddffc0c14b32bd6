"""`miles`: the fields of `Sample` in miles and slime, for `Sample.from_dict`.

`index`, `group_index` and `rollout_id` are numbers there: ours are the row's places in the export. What has
a name here stands in `metadata` under `tito`. `accumulated_token_ids` is left out: `tokens` holds them.
"""

from collections.abc import Iterator
from typing import Any

from trainer_export.samples.rewards import number_of
from trainer_export.samples.rows import SampleRow
from trainer_export.samples.values import JsonObject
from trainer_export.shapes.base import Place, Row, Shape, shape
from trainer_export.shapes.columns import Column, Kind
from trainer_export.shapes.identity import IDENTITY, identity
from trainer_export.shapes.lengths import response_lengths

COLUMNS = (
    Column("group_index", Kind.INTEGER, "number of the rollout group"),
    Column("index", Kind.INTEGER, "number of the row: unique and growing"),
    Column("rollout_id", Kind.INTEGER, "number of the rollout: shared by its rows, so that it counts once"),
    Column("prompt", Kind.TEXT, "empty: the prompt is in `tokens`"),
    Column("tokens", Kind.LONGS, "prompt and response"),
    Column("response", Kind.TEXT, "text of the response"),
    Column("response_length", Kind.INTEGER, "tokens from the first completion on"),
    Column("label", Kind.TEXT, "null", optional=True),
    Column("reward", Kind.JSON, "a number, or whatever the driver gave", optional=True),
    Column("loss_mask", Kind.MASK, "per response token: 1 = trained, and proven"),
    Column("weight_versions", Kind.TEXTS, "one per merged turn that reported one"),
    Column("rollout_log_probs", Kind.DOUBLES, "per response token, as sampled; 0.0 where nothing was"),
    Column("rollout_routed_experts", Kind.ROWS, "replay rows (tokens - 1, layers, k)", optional=True),
    Column("rollout_indexer_topk", Kind.ROWS, "replay rows (tokens - 1, layers, k)", optional=True),
    Column("remove_sample", Kind.FLAG, "true where the row trains nothing"),
    Column("status", Kind.TEXT, "`completed`, `truncated`, `aborted` or `pending`"),
    Column("metadata", Kind.JSON, "as in `native`, and `tito`: names, turns, counts"),
    Column("train_metadata", Kind.JSON, "null", optional=True),
    Column("non_generation_time", Kind.NUMBER, "`agent_metrics.total_tool_time` of the metadata, else 0"),
    Column("spec_info", Kind.JSON, "counters of speculative decoding, zeros where there were none"),
    Column("prefix_cache_info", Kind.JSON, "`cached_tokens`, `total_prompt_tokens`"),
    *IDENTITY,
)


def _cut(row: SampleRow, place: Place) -> list[Row]:
    return [
        {
            "group_index": place.group_index,
            "index": place.index,
            "rollout_id": place.rollout_index,
            "prompt": "",
            "tokens": row.tokens,
            "response": row.response,
            "response_length": row.response_length,
            "label": None,
            "reward": row.reward,
            "loss_mask": row.loss_mask,
            "weight_versions": [str(version) for version in row.weight_versions],
            "rollout_log_probs": row.logprobs,
            "rollout_routed_experts": row.routed_experts,
            "rollout_indexer_topk": row.indexer_topk,
            "remove_sample": row.trained == 0,
            "status": row.status,
            "metadata": {**row.metadata, "tito": _ours(row)},
            "train_metadata": None,
            "non_generation_time": _tool_time(row.metadata),
            "spec_info": _speculative(row),
            "prefix_cache_info": {
                "cached_tokens": row.cached_tokens,
                "total_prompt_tokens": row.prompt_tokens,
            },
            **identity(row),
        }
    ]


def _ours(row: SampleRow) -> JsonObject:
    return {
        "rollout_id": row.rollout_id,
        "attempt_id": row.attempt_id,
        "labels": dict(row.labels),
        "leaf": row.leaf,
        "path": list(row.path),
        "root_class": row.root_class,
        "agent": row.agent,
        "trained": row.trained,
        "masked": dict(row.masked),
        "stopped_at": row.stopped_at,
        "stopped_reason": row.stopped_reason,
    }


def _tool_time(metadata: JsonObject) -> float:
    metrics = metadata.get("agent_metrics")
    seconds: Any = metrics.get("total_tool_time") if isinstance(metrics, dict) else None
    return number_of(seconds) or 0.0


def _speculative(row: SampleRow) -> JsonObject:
    counts = row.speculative
    return {
        "spec_accept_token_num": counts.accepted if counts else 0,
        "spec_draft_token_num": counts.drafted if counts else 0,
        "spec_verify_ct": counts.verifications if counts else 0,
        "completion_token_num": counts.completion_tokens if counts else 0,
    }


def _check(row: Row) -> Iterator[str]:
    yield from response_lengths(row, row["response_length"], "loss_mask", "rollout_log_probs")


MILES = shape(
    Shape(
        "miles", "tito.miles/1", "`Sample` of miles and slime, for `Sample.from_dict`", COLUMNS, _cut, _check
    )
)
