"""What the shapes that come from traces share: whose rows they are, and calls as rows need them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sessions_app.rendering.drift import TokenText
from trainer_export.samples.rewards import number_of
from trainer_export.samples.values import JsonObject
from trainer_export.shapes.base import Row
from trainer_export.shapes.columns import Column, Kind
from trainer_export.spans.converting import Converted, TracedSession
from trainer_export.spans.own_calls import OwnCall
from trainer_export.spans.rules import TraceRules
from trainer_export.traces.rows.session_rows import CallTurn, RowOutcome
from trainer_export.traces.rows.v1_rows import RowRules
from trainer_export.traces.triplet import Triplet

WHOSE = (
    Column("row_id", Kind.TEXT, "`session:number`, the same at every export of the same spans"),
    Column("session_id", Kind.TEXT, "32 hex digits"),
    Column("rollout_id", Kind.TEXT, "rollout: shared by its rows"),
    Column("attempt_id", Kind.TEXT, "attempt of the rollout", optional=True),
    Column("group_id", Kind.TEXT, "rollouts of one prompt", optional=True),
    Column("row_index", Kind.INTEGER, "place among the rows of the rollout"),
    Column("row_count", Kind.INTEGER, "rows of the rollout"),
    Column("rollout_weight", Kind.NUMBER, "1 / row_count: weigh by it, and each rollout counts once"),
)


@dataclass(frozen=True, slots=True)
class TraceSource:
    """One converted session."""

    session: TracedSession
    group_id: str | None
    history: JsonObject
    """The healer's counters and the causes, for the metadata of its rows."""
    converted: Converted
    rules: TraceRules
    tokens: TokenText | None
    """The tokenizer, for classifying breaks."""

    @property
    def final_reward(self) -> float | None:
        """Reported for the session, else the last one of its triplets."""
        if self.converted.final_reward is not None:
            return self.converted.final_reward
        found = [number_of(triplet.reward) for triplet in self.converted.triplets]
        return next((reward for reward in reversed(found) if reward is not None), None)

    @property
    def turns(self) -> list[CallTurn]:
        """Its triplets as rows need them."""
        return [self._turn(triplet) for triplet in self.converted.triplets]

    def _turn(self, triplet: Triplet) -> CallTurn:
        prompt, response = triplet.prompt["token_ids"], triplet.response["token_ids"]
        return CallTurn(prompt, response, self.log_probs(triplet), number_of(triplet.reward))

    def log_probs(self, triplet: Triplet) -> list[float] | None:
        """Of our record of the call, else as recorded; None where they do not fit the tokens."""
        call = self._record(triplet.metadata.get("response_id"))
        values = call.logprobs.tolist() if call else _numbers(triplet.response.get("logprobs"))
        fits = values is not None and len(values) == len(triplet.response["token_ids"])
        return values if fits else None

    def _record(self, told: Any) -> OwnCall | None:
        if not isinstance(told, str):
            return None
        own = (call for call in self.session.own if call.response_id == told)
        return self.session.served.get(told) or next(own, None)

    @property
    def row_rules(self) -> RowRules:
        """Limits as rows take them."""
        return RowRules(
            max_prompt_length=self.rules.max_prompt_length,
            max_response_length=self.rules.max_response_length,
            reward_fillna_value=self.rules.reward_fillna_value,
        )


@dataclass(frozen=True, slots=True)
class TraceRows:
    """The rows of one session without their places in the rollout."""

    rows: Sequence[Mapping[str, Any]]
    outcome: RowOutcome
    """Counts; without rows for the shape that cuts none."""


@dataclass(frozen=True, slots=True)
class TraceShape:
    """Rows that are cut from converted sessions."""

    name: str
    schema: str
    """Name and version; stands in every file."""
    summary: str
    columns: Sequence[Column]
    rows: Callable[[TraceSource], TraceRows]
    check: Callable[[Row], Iterator[str]]
    """What is wrong with a row beyond the kinds of its columns."""


TRACE_SHAPES: dict[str, TraceShape] = {}
"""Shapes from traces by the name that requests use."""


def trace_shape(found: TraceShape) -> TraceShape:
    """Registers a shape."""
    TRACE_SHAPES[found.name] = found
    return found


def whose(source: TraceSource, number: int) -> dict[str, Any]:
    """The columns of WHOSE that a session knows."""
    session = source.session
    return {
        "row_id": f"{session.session_id}:{number}",
        "session_id": session.session_id,
        "rollout_id": session.rollout_id,
        "attempt_id": session.attempt_id or None,
        "group_id": source.group_id,
    }


def placed(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """The rows of a whole rollout with their places."""
    count = len(rows)
    return [
        {**row, "row_index": index, "row_count": count, "rollout_weight": 1 / count}
        for index, row in enumerate(rows)
    ]


def _numbers(recorded: Any) -> list[float] | None:
    """Plain numbers, or the objects of OpenAI."""
    if not isinstance(recorded, list):
        return None
    values = [number_of(one.get("logprob") if isinstance(one, dict) else one) for one in recorded]
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else None
