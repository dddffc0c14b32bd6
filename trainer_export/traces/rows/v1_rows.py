"""Rollouts -> training rows of version 1, at level `transition` (a row per turn) or `trajectory` (a row per
group).

Every row of a rollout carries the rollout's final reward. A prompt over the limit is cut and the row marked
for dropping, a response over the limit is cut; a row without a trained token is skipped.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainer_export.traces.rows.v1_groups import Turn, merged

TRAJECTORY = "trajectory"
TRANSITION = "transition"
MISMATCH_ROWS_A_STEP = 100


@dataclass(frozen=True, slots=True)
class RowRules:
    """Level and limits."""

    level: str = TRAJECTORY
    max_prompt_length: int = 2048
    max_response_length: int = 8192
    reward_fillna_value: float = 0.0


@dataclass(frozen=True, slots=True)
class Rollout:
    """One finished rollout."""

    turns: list[Turn]
    final_reward: float | None
    order: tuple[int, int]
    """Step, and index in the step."""


@dataclass(frozen=True, slots=True)
class Row:
    """One training row before padding."""

    prompt_ids: list[int]
    response_ids: list[int]
    loss_mask: list[int] | None
    """None at level `transition`: every response token is trained."""
    log_probs: list[float] | None
    final_reward: float | None
    turn_index: int | None
    """None at level `trajectory`."""
    is_drop: bool = False


def training_rows(rollouts: Sequence[Rollout], rules: RowRules) -> dict[str, Any]:
    """`{"rows", "metrics"}`. No rows at all is an error."""
    if rules.level not in (TRAJECTORY, TRANSITION):
        raise ValueError(f"Unknown trace_aggregator_level: {rules.level}")
    ordered = sorted(rollouts, key=lambda rollout: rollout.order)
    counters = Counters(rules)
    rows = [row for rollout in ordered for row in counters.kept(rollout)]
    if not rows:
        raise RuntimeError("get_train_data_batch emitted zero training rows.")
    with_log_probs = all(row.log_probs is not None for row in rows)
    return {
        "rows": [_to_json(row, rules, with_log_probs) for row in rows],
        "metrics": counters.metrics(len(rows)),
    }


class Counters:
    """Counts what is cut, skipped and not merged while the rows go by."""

    def __init__(self, rules: RowRules) -> None:
        self._rules = rules
        self._unmerged_rollouts = 0
        self._mismatches = 0
        self._truncated = 0
        self._skipped = 0
        self._turns = 0

    def kept(self, rollout: Rollout) -> Iterator[Row]:
        """The rows of one rollout that train at least one token."""
        self._turns += len(rollout.turns)
        rows = list(_rows_of(rollout, self._rules.level))
        if self._rules.level == TRAJECTORY and len(rows) > 1:
            self._unmerged_rollouts += 1
            self._mismatches += len(rows) - 1
        for row in rows:
            kept = cut(row, self._rules)
            self._truncated += len(kept.response_ids) < len(row.response_ids)
            if trains(kept):
                yield kept
            else:
                self._skipped += 1

    def metrics(self, row_count: int) -> dict[str, int]:
        """Named as the reference logs them."""
        metrics = {
            "training/n_sample": row_count,
            "training/n_truncated_sample": self._truncated,
            "training/n_skipped_empty_rows": self._skipped,
            "training/n_turns": self._turns,
        }
        if self._rules.level == TRAJECTORY:
            metrics["training/n_unmerged_rollouts"] = self._unmerged_rollouts
            metrics["training/n_trace_merge_mismatch_rows"] = min(self._mismatches, MISMATCH_ROWS_A_STEP)
        return metrics


def _rows_of(rollout: Rollout, level: str) -> Iterator[Row]:
    if level == TRANSITION:
        for index, turn in enumerate(rollout.turns):
            yield Row(turn.prompt_ids, turn.response_ids, None, turn.log_probs, rollout.final_reward, index)
        return
    for group in merged(rollout.turns):
        yield Row(
            group.prompt_ids, group.response_ids, group.loss_mask, group.log_probs, rollout.final_reward, None
        )


def cut(row: Row, rules: RowRules) -> Row:
    """A row within the limits. Log probabilities that do not fit the tokens are dropped after cutting."""
    limit = rules.max_response_length
    response_ids = row.response_ids[:limit]
    log_probs = row.log_probs
    if log_probs is not None and len(row.response_ids) > limit:
        log_probs = log_probs[:limit]
    if log_probs is not None and len(log_probs) != len(response_ids):
        log_probs = None
    return replace(
        row,
        prompt_ids=row.prompt_ids[: rules.max_prompt_length],
        response_ids=response_ids,
        loss_mask=None if row.loss_mask is None else row.loss_mask[:limit],
        log_probs=log_probs,
        is_drop=len(row.prompt_ids) > rules.max_prompt_length,
    )


def trains(row: Row) -> bool:
    """Whether any token of a row is trained."""
    return any(row.loss_mask) if row.loss_mask is not None else bool(row.response_ids)


def _to_json(row: Row, rules: RowRules, with_log_probs: bool) -> dict[str, Any]:
    """The reward sits on the last kept token; without a final reward it has no place."""
    rewarded = row.final_reward is not None
    fields: dict[str, Any] = {
        "prompt_ids": row.prompt_ids,
        "response_ids": row.response_ids,
        "log_probs": row.log_probs if with_log_probs else None,
        "is_drop": row.is_drop,
        "reward_position": len(row.response_ids) - 1 if rewarded else None,
        "reward": row.final_reward if rewarded else rules.reward_fillna_value,
    }
    if row.loss_mask is None:
        return fields | {"turn_index": row.turn_index}
    return fields | {"loss_mask": row.loss_mask}
