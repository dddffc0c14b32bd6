"""`transition`: a training row a call, from traces. Every response token is trained."""

from collections.abc import Iterator
from typing import Any

from trainer_export.shapes.base import Row
from trainer_export.shapes.columns import Column, Kind
from trainer_export.shapes.traced import WHOSE, TraceRows, TraceShape, TraceSource, trace_shape, whose
from trainer_export.traces.rows.session_rows import SessionRow, classes, transition_rows

ROW = (
    *WHOSE,
    Column("prompt_ids", Kind.IDS, "cut to the limit"),
    Column("response_ids", Kind.IDS, "cut to the limit"),
    Column("log_probs", Kind.DOUBLES, "one per response id; null where they are not known", optional=True),
    Column("is_drop", Kind.FLAG, "the prompt was cut: for group statistics only"),
    Column("reward", Kind.NUMBER, "the final reward, or `reward_fillna_value`"),
    Column("reward_position", Kind.INTEGER, "where it sits in the response", optional=True),
    Column(
        "continues_turn",
        Kind.INTEGER,
        "earlier call of the session that the prompt goes on from, id by id; the longest of all",
        optional=True,
    ),
    Column("mismatch", Kind.TEXTS, "why it goes on from none: classes of the break"),
    Column("mismatch_index", Kind.INTEGER, "first token that differs", optional=True),
    Column("metadata", Kind.JSON, "of the session: healer counters, history causes"),
)
COLUMNS = (
    *ROW,
    Column("turn_index", Kind.INTEGER, "place among the calls of the session"),
    Column("turn_reward", Kind.NUMBER, "of the call itself", optional=True),
)


def rows_of_transition(source: TraceSource) -> TraceRows:
    """A row for every triplet that has a response."""
    turns = source.turns
    outcome = transition_rows(turns, source.final_reward, source.row_rules, source.tokens)
    rows = [
        {
            **row_values(source, one, one.turns[0]),
            "turn_index": one.turns[0],
            "turn_reward": turns[one.turns[0]].reward,
        }
        for one in outcome.rows
    ]
    return TraceRows(rows, outcome)


def row_values(source: TraceSource, one: SessionRow, number: int) -> dict[str, Any]:
    """The columns of ROW that a session knows. The reward sits on the last kept token."""
    row, rewarded = one.row, one.row.final_reward is not None
    return {
        **whose(source, number),
        "prompt_ids": row.prompt_ids,
        "response_ids": row.response_ids,
        "log_probs": row.log_probs,
        "is_drop": row.is_drop,
        "reward": row.final_reward if rewarded else source.rules.reward_fillna_value,
        "reward_position": len(row.response_ids) - 1 if rewarded else None,
        "continues_turn": one.continues,
        "mismatch": classes(one.broken) if one.broken else [],
        "mismatch_index": one.broken.position if one.broken else None,
        "metadata": source.history,
    }


def problems(row: Row) -> Iterator[str]:
    """Of the columns of ROW."""
    length = len(row["response_ids"])
    if row["log_probs"] is not None and len(row["log_probs"]) != length:
        yield f"log_probs has {len(row['log_probs'])} values, the response has {length}"
    if row["reward_position"] not in (None, length - 1):
        yield f"the reward sits at {row['reward_position']}, the response has {length}"


TRANSITION = trace_shape(
    TraceShape(
        "transition",
        "tito.transition/1",
        "a training row a call, from traces",
        COLUMNS,
        rows_of_transition,
        problems,
    )
)
