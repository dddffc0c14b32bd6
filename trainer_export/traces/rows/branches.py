"""Turns -> rows that continue each other, tried against every open branch: the longest prefix wins.

Interleaved agents, sub-agents and retries thus give few long rows. Invariants: each turn's response is
trained in exactly one row, every trained token stands behind the very context it was sampled in, and each
break has its mismatch class.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sessions_app.rendering.drift import Break, TokenText, classify
from trainer_export.traces.rows.contexts import OpenBranches


class EqualPrompts(StrEnum):
    """What becomes of turns that answer the very same prompt."""

    ALL = "all"
    LAST = "last"
    BEST = "best"


@dataclass(frozen=True, slots=True)
class BranchTurn:
    """One call."""

    key: Hashable
    """Names the call in the outcome."""
    prompt_ids: Sequence[int]
    response_ids: Sequence[int]
    log_probs: Sequence[float] | None = None
    """Aligned with response_ids; None when unknown."""
    reward: float | None = None


@dataclass(slots=True)
class Branch:
    """One row in the making."""

    turns: list[BranchTurn]
    prompt_ids: list[int]
    response_ids: list[int]
    loss_mask: list[int]
    log_probs: list[float | None]
    """None where a turn's log probabilities are unknown, 0.0 for observations."""
    broken_from: Break | None = None
    """Why the first turn does not continue the closest branch before it; None when there was none to
    continue.
    """

    @property
    def context_length(self) -> int:
        """Tokens so far."""
        return len(self.prompt_ids) + len(self.response_ids)

    @property
    def ids(self) -> list[int]:
        """All tokens so far."""
        return self.prompt_ids + self.response_ids


@dataclass(slots=True)
class Branches:
    """The outcome of one rollout."""

    rows: list[Branch] = field(default_factory=list)
    left_out: list[BranchTurn] = field(default_factory=list)
    """Turns dropped by the policy for equal prompts."""


def branches(
    turns: Iterable[BranchTurn],
    *,
    tokens: TokenText | None = None,
    equal_prompts: EqualPrompts = EqualPrompts.ALL,
) -> Branches:
    """Rows in order of their first turn. Without `tokens` breaks are not classified."""
    kept, left_out = _without_repeats(list(turns), equal_prompts)
    outcome, opened = Branches(left_out=left_out), OpenBranches()
    for turn in kept:
        number = opened.continued_by(turn.prompt_ids)
        if number is None:
            number = len(outcome.rows)
            outcome.rows.append(_opened(turn, opened, tokens))
        else:
            opened.close(number)
            _continue(outcome.rows[number], turn)
        opened.add(number, outcome.rows[number].ids)
    return outcome


def _without_repeats(
    turns: list[BranchTurn], policy: EqualPrompts
) -> tuple[list[BranchTurn], list[BranchTurn]]:
    if policy is EqualPrompts.ALL:
        return turns, []
    chosen: dict[tuple[int, ...], BranchTurn] = {}
    for turn in turns:
        rival = chosen.get(tuple(turn.prompt_ids))
        if rival is None or policy is EqualPrompts.LAST or _score(turn) >= _score(rival):
            chosen[tuple(turn.prompt_ids)] = turn
    kept = {id(turn) for turn in chosen.values()}
    return [turn for turn in turns if id(turn) in kept], [turn for turn in turns if id(turn) not in kept]


def _score(turn: BranchTurn) -> float:
    return float("-inf") if turn.reward is None else turn.reward


def _opened(turn: BranchTurn, opened: OpenBranches, tokens: TokenText | None) -> Branch:
    branch = Branch([turn], list(turn.prompt_ids), [], [], [])
    _append(branch, turn)
    closest = None if tokens is None else opened.closest(turn.prompt_ids)
    if closest is not None and tokens is not None:
        branch.broken_from = classify(turn.prompt_ids, closest, tokens)
    return branch


def _continue(branch: Branch, turn: BranchTurn) -> None:
    observation = list(turn.prompt_ids[branch.context_length :])
    branch.response_ids += observation
    branch.loss_mask += [0] * len(observation)
    branch.log_probs += [0.0] * len(observation)
    branch.turns.append(turn)
    _append(branch, turn)


def _append(branch: Branch, turn: BranchTurn) -> None:
    branch.response_ids += turn.response_ids
    branch.loss_mask += [1] * len(turn.response_ids)
    known: Sequence[Any] | None = turn.log_probs
    if known is None or len(known) != len(turn.response_ids):
        known = [None] * len(turn.response_ids)
    branch.log_probs += known
