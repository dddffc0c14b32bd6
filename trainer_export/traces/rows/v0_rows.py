"""Rows of version 0.3: a row per turn (`transition`), or merged turns (`trajectory`) with the reference's
defects.

It compares prompt and response, not the prompt alone, with what came before; it takes the whole prompt for
an observation of no length; the overflow of a later group's long prompt is trained on, and makes the mask
longer than the response. Who wants rows without these uses `branches`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trainer_export.traces.rows.prefix import starts_with
from trainer_export.traces.triplet import Triplet


@dataclass(frozen=True, slots=True)
class Limits:
    """Longest prompt and response of a row."""

    prompt: int
    response: int


def transition_rows(triplets: Sequence[Triplet], reward: Any, limits: Limits) -> list[dict[str, Any]]:
    """A row per turn; every row carries the rollout's reward."""
    return [
        _row(_prompt(turn), _response(turn), None, reward, limits) | {"turn_index": index}
        for index, turn in enumerate(triplets)
    ]


def trajectory_rows(triplets: Sequence[Triplet], reward: Any, limits: Limits) -> list[dict[str, Any]]:
    """A row per group of consecutive turns."""
    return [_row(*_merged(triplets, group, limits.prompt), reward, limits) for group in _groups(triplets)]


def _groups(triplets: Sequence[Triplet]) -> Iterator[range]:
    """Ranges of turns whose prompt and response start with those of the turn before."""
    start, context = 0, list[int]()
    for index, turn in enumerate(triplets):
        ids = _prompt(turn) + _response(turn)
        if index > start and not starts_with(ids, context):
            yield range(start, index)
            start = index
        context = ids
    if triplets:
        yield range(start, len(triplets))


def _merged(triplets: Sequence[Triplet], group: range, limit: int) -> tuple[list[int], list[int], list[int]]:
    """Prompt, response and mask of one group, before cutting."""
    first = triplets[group[0]]
    prompt, response = _prompt(first), list[int]()
    if group[0] > 0:
        prompt, response = prompt[:limit], prompt[limit:]
    mask = [1] * len(response)
    response = response + _response(first)
    mask += [1] * len(response)
    for index in group[1:]:
        later = triplets[index]
        observed = len(_prompt(later)) - len(response) - len(prompt)
        response = response + _prompt(later)[-observed:] + _response(later)
        mask += [0] * observed + [1] * len(_response(later))
    return prompt, response, mask


def _row(
    prompt: list[int], response: list[int], mask: list[int] | None, reward: Any, limits: Limits
) -> dict[str, Any]:
    """Cut to the limits; a cut prompt marks the row for dropping."""
    row: dict[str, Any] = {
        "prompt_ids": prompt[: limits.prompt],
        "response_ids": response[: limits.response],
        "is_drop": len(prompt) > limits.prompt,
        "reward": reward,
    }
    if mask is None:
        return row
    return row | {"loss_mask": mask[: limits.response] if len(response) > limits.response else mask}


def _prompt(turn: Triplet) -> list[int]:
    return list(turn.prompt.get("token_ids") or ())


def _response(turn: Triplet) -> list[int]:
    return list(turn.response.get("token_ids") or ())
