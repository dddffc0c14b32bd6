"""`verl`: the tensors and the non-tensor columns of a `DataProto`, one row each, without padding.

A batch pads prompts on the left and responses on the right; `trainer_export.batches.verl_batch` does it in
numpy. `rm_scores` holds the row's reward at the last response token, zero elsewhere.
"""

from collections.abc import Iterator

import numpy as np

from trainer_export.samples.rewards import number_of
from trainer_export.samples.rows import SampleRow
from trainer_export.shapes.base import Place, Row, Shape, shape
from trainer_export.shapes.columns import Column, Kind
from trainer_export.shapes.identity import IDENTITY, identity
from trainer_export.shapes.lengths import response_lengths

COLUMNS = (
    Column("prompts", Kind.LONGS, "tokens before the first completion"),
    Column("responses", Kind.LONGS, "tokens from the first completion on"),
    Column("input_ids", Kind.LONGS, "prompts and responses"),
    Column("attention_mask", Kind.LONGS, "ones, as long as `input_ids`"),
    Column("position_ids", Kind.LONGS, "0, 1, 2, …"),
    Column("response_mask", Kind.LONGS, "per response token: 1 = trained, and proven"),
    Column("rollout_log_probs", Kind.FLOATS, "per response token, as sampled; 0.0 where nothing was"),
    Column("rm_scores", Kind.FLOATS, "the reward at the last response token, else 0.0"),
    Column("reward", Kind.NUMBER, "the same as one number", optional=True),
    Column("uid", Kind.TEXT, "group, or the rollout where there is no group: what advantages compare"),
    Column("rollout_id", Kind.TEXT, "rollout: shared by its rows"),
    Column("status", Kind.TEXT, "`completed`, `truncated`, `aborted` or `pending`"),
    Column("metadata", Kind.JSON, "as in `native`: the driver's, lifecycle, healer counters, history causes"),
    *IDENTITY,
)


def _cut(row: SampleRow, place: Place) -> list[Row]:
    start = len(row.tokens) - row.response_length
    reward = number_of(row.reward)
    scores = np.zeros(row.response_length, np.float32)
    if scores.size:
        scores[-1] = reward or 0.0
    return [
        {
            "prompts": row.tokens[:start],
            "responses": row.tokens[start:],
            "input_ids": row.tokens,
            "attention_mask": np.ones(len(row.tokens), np.int64),
            "position_ids": np.arange(len(row.tokens)),
            "response_mask": row.loss_mask,
            "rollout_log_probs": row.logprobs,
            "rm_scores": scores,
            "reward": reward,
            "uid": row.group_id or row.rollout_id,
            "rollout_id": row.rollout_id,
            "status": row.status,
            "metadata": row.metadata,
            **identity(row),
        }
    ]


def _check(row: Row) -> Iterator[str]:
    yield from response_lengths(row, len(row["responses"]), "response_mask", "rollout_log_probs")
    if len(row["rm_scores"]) != len(row["responses"]):
        yield "rm_scores are not as long as the responses"
    whole = np.concatenate([np.asarray(row["prompts"]), np.asarray(row["responses"])])
    if not np.array_equal(whole, row["input_ids"]):
        yield "input_ids are not prompts and responses"
    if not np.array_equal(row["attention_mask"], np.ones(whole.size)):
        yield "attention_mask is not a one for each of input_ids"
    if not np.array_equal(row["position_ids"], np.arange(whole.size)):
        yield "position_ids do not count input_ids from 0"
    if np.any(np.asarray(row["rm_scores"])[:-1]):
        yield "rm_scores say something before the last response token"


VERL = shape(Shape("verl", "tito.verl/1", "rows of a `DataProto`", COLUMNS, _cut, _check))
