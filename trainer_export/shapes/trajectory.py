"""`trajectory`: a training row a chain of calls that continue each other token by token, from traces."""

from collections.abc import Iterator

import numpy as np

from trainer_export.shapes.base import Row
from trainer_export.shapes.columns import Column, Kind
from trainer_export.shapes.traced import TraceRows, TraceShape, TraceSource, trace_shape
from trainer_export.shapes.transition import ROW, problems, row_values
from trainer_export.spans.rules import BETTER
from trainer_export.traces.rows.session_rows import RowOutcome, branched_rows, chained_rows

COLUMNS = (
    *ROW,
    Column("loss_mask", Kind.MASK, "per response id: 1 = sampled, 0 = what came between calls"),
    Column("turn_indices", Kind.JSON, "its calls, by place among the calls of the session"),
)


def rows_of_trajectory(source: TraceSource) -> TraceRows:
    """A row for every chain (`compat`) or branch (`better`)."""
    outcome = _outcome(source)
    rows = [
        {
            **row_values(source, one, number),
            "loss_mask": one.row.loss_mask,
            "turn_indices": list(one.turns),
        }
        for number, one in enumerate(outcome.rows)
    ]
    return TraceRows(rows, outcome)


def _outcome(source: TraceSource) -> RowOutcome:
    turns, final, rules = source.turns, source.final_reward, source.row_rules
    if source.rules.mode == BETTER:
        return branched_rows(turns, final, rules, source.tokens, source.rules.equal_prompts)
    return chained_rows(turns, final, rules, source.tokens)


def _check(row: Row) -> Iterator[str]:
    yield from problems(row)
    if len(row["loss_mask"]) != len(row["response_ids"]):
        yield "loss_mask does not count the response"
    if not np.isin(np.asarray(row["loss_mask"]), (0, 1)).all():
        yield "loss_mask holds other values than 0 and 1"


TRAJECTORY = trace_shape(
    TraceShape(
        "trajectory",
        "tito.trajectory/1",
        "a training row a chain of calls, from traces",
        COLUMNS,
        rows_of_trajectory,
        _check,
    )
)
