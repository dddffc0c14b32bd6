"""`trl`: prompt and completion ids with a mask, as TRL's trainers and plain Hugging Face `datasets` take
them.
"""

from collections.abc import Iterator

from trainer_export.samples.rewards import number_of
from trainer_export.samples.rows import SampleRow
from trainer_export.shapes.base import Place, Row, Shape, shape
from trainer_export.shapes.columns import Column, Kind
from trainer_export.shapes.identity import IDENTITY, identity
from trainer_export.shapes.lengths import response_lengths

COLUMNS = (
    Column("prompt_ids", Kind.LONGS, "tokens before the first completion"),
    Column("completion_ids", Kind.LONGS, "tokens from the first completion on"),
    Column("completion_mask", Kind.LONGS, "per completion token: 1 = trained, and proven"),
    Column("logprobs", Kind.FLOATS, "per completion token, as sampled; 0.0 where nothing was"),
    Column("reward", Kind.NUMBER, "null where none was reported or it is no number", optional=True),
    Column("rollout_id", Kind.TEXT, "rollout: shared by its rows"),
    Column("status", Kind.TEXT, "`completed`, `truncated`, `aborted` or `pending`"),
    Column("metadata", Kind.JSON, "as in `native`: the driver's, lifecycle, healer counters, history causes"),
    *IDENTITY,
)


def _cut(row: SampleRow, place: Place) -> list[Row]:
    start = len(row.tokens) - row.response_length
    return [
        {
            "prompt_ids": row.tokens[:start],
            "completion_ids": row.tokens[start:],
            "completion_mask": row.loss_mask,
            "logprobs": row.logprobs,
            "reward": number_of(row.reward),
            "rollout_id": row.rollout_id,
            "status": row.status,
            "metadata": row.metadata,
            **identity(row),
        }
    ]


def _check(row: Row) -> Iterator[str]:
    yield from response_lengths(row, len(row["completion_ids"]), "completion_mask", "logprobs")


TRL = shape(Shape("trl", "tito.trl/1", "rows for TRL and Hugging Face `datasets`", COLUMNS, _cut, _check))
