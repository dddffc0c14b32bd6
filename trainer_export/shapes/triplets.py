"""`triplets`: a row a call: prompt, response, reward, and what is known about them."""

from collections.abc import Iterator, Mapping
from typing import Any

from trainer_export.samples.rewards import number_of
from trainer_export.shapes.base import Row
from trainer_export.shapes.columns import Column, Kind
from trainer_export.shapes.traced import WHOSE, TraceRows, TraceShape, TraceSource, trace_shape, whose
from trainer_export.traces.rows.session_rows import RowOutcome

COLUMNS = (
    *WHOSE,
    Column("turn_index", Kind.INTEGER, "place among the calls of the session"),
    Column("prompt_ids", Kind.IDS, "ids fed; empty where nobody knows them"),
    Column("response_ids", Kind.IDS, "ids sampled"),
    Column("log_probs", Kind.DOUBLES, "one per response id; null where they are not known", optional=True),
    Column("reward", Kind.NUMBER, "of the call", optional=True),
    Column("rewards", Kind.JSON, "all named rewards of the call (`better`)", optional=True),
    Column("final_reward", Kind.NUMBER, "of the session", optional=True),
    Column("agent_name", Kind.TEXT, "`*` outside of any agent", optional=True),
    Column("response_id", Kind.TEXT, "as the span names it", optional=True),
    Column("prompt", Kind.JSON, "messages as recorded", optional=True),
    Column("response", Kind.JSON, "as recorded", optional=True),
    Column("image_urls", Kind.TEXTS, "of the prompt"),
    Column("metadata", Kind.JSON, "of request and response, as recorded; healer counters, history causes"),
)
_COLUMN_OF_METADATA = frozenset({"response_id", "agent_name", "rewards", "final_reward"})


def triplet_rows(source: TraceSource) -> TraceRows:
    """A row for every triplet."""
    final = source.final_reward
    rows = [_row(source, number, final) for number in range(len(source.converted.triplets))]
    return TraceRows(rows, RowOutcome())


def _row(source: TraceSource, number: int, final: float | None) -> dict[str, Any]:
    triplet = source.converted.triplets[number]
    metadata = triplet.metadata
    return {
        **whose(source, number),
        "turn_index": number,
        "prompt_ids": triplet.prompt["token_ids"],
        "response_ids": triplet.response["token_ids"],
        "log_probs": source.log_probs(triplet),
        "reward": number_of(triplet.reward),
        "rewards": metadata.get("rewards"),
        "final_reward": final,
        "agent_name": _text(metadata.get("agent_name")),
        "response_id": _text(metadata.get("response_id")),
        "prompt": triplet.prompt.get("raw_content"),
        "response": triplet.response.get("raw_content"),
        "image_urls": [url for url in triplet.prompt.get("image_urls", ()) if isinstance(url, str)],
        "metadata": _of_the_call(metadata) | source.history,
    }


def _of_the_call(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in metadata.items() if name not in _COLUMN_OF_METADATA}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _check(row: Row) -> Iterator[str]:
    if row["log_probs"] is not None and len(row["log_probs"]) != len(row["response_ids"]):
        yield "log_probs does not count the response"


TRIPLETS = trace_shape(
    TraceShape("triplets", "tito.triplets/1", "a row a call, from traces", COLUMNS, triplet_rows, _check)
)
