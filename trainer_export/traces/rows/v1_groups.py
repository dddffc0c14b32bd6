"""Turns of one rollout -> groups that continue each other token by token.

A turn joins the open group when its prompt starts with the prompt and response of the turn before; only
that turn is tried, so two interleaved agents never merge. Invariant: the turns themselves are never
changed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainer_export.traces.rows.prefix import starts_with


@dataclass(frozen=True, slots=True)
class Turn:
    """One triplet of a rollout."""

    prompt_ids: list[int]
    response_ids: list[int]
    log_probs: list[float] | None

    @property
    def context(self) -> list[int]:
        """What the next turn's prompt has to start with."""
        return self.prompt_ids + self.response_ids


class Group:
    """Merged turns: the first prompt, then everything after it."""

    def __init__(self, first: Turn) -> None:
        self.prompt_ids = list(first.prompt_ids)
        self.response_ids = list(first.response_ids)
        self.loss_mask = [1] * len(first.response_ids)
        self.log_probs = None if first.log_probs is None else list(first.log_probs)
        self._context = first.context
        self.turns = 1

    def is_continued_by(self, turn: Turn) -> bool:
        """Whether the turn saw exactly what this group ends with."""
        return starts_with(turn.prompt_ids, self._context)

    def add(self, turn: Turn) -> None:
        """Append what is new in the prompt (mask 0) and the response (mask 1)."""
        observation = turn.prompt_ids[len(self._context) :]
        self.response_ids += [*observation, *turn.response_ids]
        self.loss_mask += [0] * len(observation) + [1] * len(turn.response_ids)
        if self.log_probs is not None:
            self._add_log_probs(len(observation), turn)
        self._context = turn.context
        self.turns += 1

    def _add_log_probs(self, observed: int, turn: Turn) -> None:
        """One turn without usable log probabilities takes them from the whole group."""
        if self.log_probs is None or turn.log_probs is None or len(turn.log_probs) != len(turn.response_ids):
            self.log_probs = None
        else:
            self.log_probs += [0.0] * observed + list(turn.log_probs)


def merged(turns: Sequence[Turn]) -> Iterator[Group]:
    """The groups in order; each break is one mismatch."""
    group: Group | None = None
    for turn in turns:
        if group is None:
            group = Group(turn)
        elif group.is_continued_by(turn):
            group.add(turn)
        else:
            yield group
            group = Group(turn)
    if group is not None:
        yield group
