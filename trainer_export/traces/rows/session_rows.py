"""Calls of one session -> training rows, a row a call (`transition`) or a row a branch (`trajectory`).

`compat`: the rules of version 1, which tries the directly preceding context only. `better`: every open
branch, longest prefix first. In both every row tells which earlier call its prompt goes on from, all
of them being tried. Every row carries the session's final reward and is cut to the limits; a row
without a trained token is skipped and counted. Each break has its class and the index of the first token
that differs.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sessions_app.rendering.drift import Break, TokenText, classify
from trainer_export.traces.rows.branches import Branch, BranchTurn, EqualPrompts, branches
from trainer_export.traces.rows.contexts import Contexts, OpenBranches
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

    @property
    def context(self) -> list[int]:
        """What a later prompt starts with where it goes on from this call."""
        return self.prompt_ids + self.response_ids


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A row with where it comes from."""

    row: Row
    turns: tuple[int, ...]
    """Indices of its calls."""
    continues: int | None = None
    """Index of the call whose ids the prompt goes on from, the longest of all earlier ones."""
    broken: Break | None = None
    """Why it does not go on: from the closest open branch, in chains from the row before it."""


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


def transition_rows(
    turns: Sequence[CallTurn], final: float | None, rules: RowRules, tokens: TokenText | None
) -> RowOutcome:
    """A row a call."""
    outcome, opened = RowOutcome(), OpenBranches()
    for index, (turn, continues) in enumerate(zip(turns, continued(turns), strict=True)):
        closest = None
        if continues is None:
            closest = opened.closest(turn.prompt_ids)
        else:
            opened.close(continues)
        row = Row(turn.prompt_ids, turn.response_ids, None, turn.log_probs, final, index)
        _keep(outcome, SessionRow(row, (index,), continues, _break(turn, closest, tokens)), rules)
        opened.add(index, turn.context)
    return outcome


def chained_rows(
    turns: Sequence[CallTurn], final: float | None, rules: RowRules, tokens: TokenText | None
) -> RowOutcome:
    """`compat`: a row a group of consecutive calls."""
    outcome, start, continues = RowOutcome(), 0, continued(turns)
    for group in merged([Turn(turn.prompt_ids, turn.response_ids, turn.log_probs) for turn in turns]):
        before = turns[start - 1].context if start else None
        row = Row(group.prompt_ids, group.response_ids, group.loss_mask, group.log_probs, final, None)
        members = tuple(range(start, start + group.turns))
        _keep(
            outcome, SessionRow(row, members, continues[start], _break(turns[start], before, tokens)), rules
        )
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
    outcome, continues = (
        RowOutcome(left_out=[int(str(turn.key)) for turn in found.left_out]),
        continued(turns),
    )
    for branch in found.rows:
        row = Row(branch.prompt_ids, branch.response_ids, branch.loss_mask, _known(branch), final, None)
        members = tuple(int(str(turn.key)) for turn in branch.turns)
        _keep(outcome, SessionRow(row, members, continues[members[0]], branch.broken_from), rules)
    return outcome


def continued(turns: Sequence[CallTurn]) -> list[int | None]:
    """For each call the earlier one that its prompt goes on from."""
    contexts, found = Contexts(), list[int | None]()
    for index, turn in enumerate(turns):
        found.append(contexts.continued_by(turn.prompt_ids))
        contexts.add(index, turn.context)
    return found


def _break(turn: CallTurn, context: Sequence[int] | None, tokens: TokenText | None) -> Break | None:
    return None if context is None or tokens is None else classify(turn.prompt_ids, context, tokens)


def _known(branch: Branch) -> list[float] | None:
    """One call without log probabilities takes them from the whole row."""
    known = [value for value in branch.log_probs if value is not None]
    return known if len(known) == len(branch.log_probs) else None


def _keep(outcome: RowOutcome, made: SessionRow, rules: RowRules) -> None:
    if made.broken is not None:
        outcome.mismatches.update(classes(made.broken))
    kept = cut(made.row, rules)
    outcome.truncated += len(kept.response_ids) < len(made.row.response_ids)
    if trains(kept):
        outcome.rows.append(replace(made, row=kept))
    else:
        outcome.skipped += 1


def classes(broken: Break) -> list[str]:
    """Names of the classes of a break."""
    names = ("template_mismatch", "retoken_mismatch", "others_mismatch")
    return [name for name in names if getattr(broken, name)]
