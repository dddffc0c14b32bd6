"""Calls of one session -> training rows, a row a call (`transition`) or a row a branch (`trajectory`).

`compat`: the rules of version 1, which tries the directly preceding context only. `better`: every open
branch, longest prefix first. Every row carries the session's final reward and is cut to the limits; a row
without a trained token is skipped and counted. Each break has its class and the index of the first token
that differs.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from sessions_app.rendering.drift import Break, TokenText, classify
from trainer_export.traces.rows.branches import Branch, BranchTurn, EqualPrompts, branches
from trainer_export.traces.rows.v1_groups import Turn, merged
from trainer_export.traces.rows.v1_rows import Row, RowRules, cut, trains


@dataclass(frozen=True, slots=True)
class CallTurn:
    """One triplet as rows need it."""

    prompt_ids: list[int]
    response_ids: list[int]
    log_probs: list[float] | None
    """As many as response_ids, else None."""
    reward: float | None


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A row with where it comes from."""

    row: Row
    turns: tuple[int, ...]
    """Indices of its calls."""
    broken: Break | None = None
    """Why it does not go on from the row before it (`better`: from the closest one)."""


@dataclass(slots=True)
class RowOutcome:
    """Rows, and what was cut or left out."""

    rows: list[SessionRow] = field(default_factory=list)
    skipped: int = 0
    """Rows without a trained token."""
    truncated: int = 0
    """Rows whose response was over the limit."""
    left_out: list[int] = field(default_factory=list)
    """Calls that the policy for equal prompts left out, by index."""
    mismatches: Counter[str] = field(default_factory=Counter)
    """Breaks by class; one break can count in two."""


def transition_rows(turns: Sequence[CallTurn], final: float | None, rules: RowRules) -> RowOutcome:
    """A row a call."""
    outcome = RowOutcome()
    for index, turn in enumerate(turns):
        row = Row(turn.prompt_ids, turn.response_ids, None, turn.log_probs, final, index)
        _keep(outcome, row, (index,), None, rules)
    return outcome


def chained_rows(
    turns: Sequence[CallTurn], final: float | None, rules: RowRules, tokens: TokenText | None
) -> RowOutcome:
    """`compat`: a row a group of consecutive calls."""
    outcome, start = RowOutcome(), 0
    for group in merged([Turn(turn.prompt_ids, turn.response_ids, turn.log_probs) for turn in turns]):
        broken = _break(turns, start, tokens) if start else None
        row = Row(group.prompt_ids, group.response_ids, group.loss_mask, group.log_probs, final, None)
        _keep(outcome, row, tuple(range(start, start + group.turns)), broken, rules)
        start += group.turns
    return outcome


def branched_rows(
    turns: Sequence[CallTurn],
    final: float | None,
    rules: RowRules,
    tokens: TokenText | None,
    equal_prompts: EqualPrompts,
) -> RowOutcome:
    """`better`: a row a branch."""
    keyed = [
        BranchTurn(index, turn.prompt_ids, turn.response_ids, turn.log_probs, turn.reward)
        for index, turn in enumerate(turns)
    ]
    found = branches(keyed, tokens=tokens, equal_prompts=equal_prompts)
    outcome = RowOutcome(left_out=[int(str(turn.key)) for turn in found.left_out])
    for branch in found.rows:
        row = Row(branch.prompt_ids, branch.response_ids, branch.loss_mask, _known(branch), final, None)
        members = tuple(int(str(turn.key)) for turn in branch.turns)
        _keep(outcome, row, members, branch.broken_from, rules)
    return outcome


def _break(turns: Sequence[CallTurn], start: int, tokens: TokenText | None) -> Break | None:
    before = turns[start - 1]
    if tokens is None:
        return None
    return classify(turns[start].prompt_ids, before.prompt_ids + before.response_ids, tokens)


def _known(branch: Branch) -> list[float] | None:
    """One call without log probabilities takes them from the whole row."""
    known = [value for value in branch.log_probs if value is not None]
    return known if len(known) == len(branch.log_probs) else None


def _keep(
    outcome: RowOutcome, row: Row, turns: tuple[int, ...], broken: Break | None, rules: RowRules
) -> None:
    if broken is not None:
        outcome.mismatches.update(classes(broken))
    kept = cut(row, rules)
    outcome.truncated += len(kept.response_ids) < len(row.response_ids)
    if trains(kept):
        outcome.rows.append(SessionRow(kept, turns, broken))
    else:
        outcome.skipped += 1


def classes(broken: Break) -> list[str]:
    """Names of the classes of a break."""
    names = ("template_mismatch", "retoken_mismatch", "others_mismatch")
    return [name for name in names if getattr(broken, name)]
