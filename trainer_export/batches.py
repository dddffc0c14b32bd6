"""Rows of exports as padded batches, in numpy. Importable without Django or torch."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_PROMPT = ("prompts",)
_RESPONSE = ("responses", "response_mask", "rollout_log_probs", "rm_scores")


def verl_batch(
    rows: Sequence[Mapping[str, Any]],
    pad_token_id: int,
    *,
    prompt_length: int | None = None,
    response_length: int | None = None,
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Tensors and non-tensors of a `DataProto` from rows of shape `verl`: prompts are padded on the left,
    responses on the right. Raises ValueError for no rows, and for a row that a given length does not hold.
    """
    if not rows:
        raise ValueError("a batch needs a row")
    left = prompt_length or max(len(row["prompts"]) for row in rows)
    right = response_length or max(len(row["responses"]) for row in rows)
    tensors: dict[str, Array] = {}
    for name in _PROMPT:
        tensors[name] = np.stack([_padded(row[name], left, pad_token_id, on_left=True) for row in rows])
    for name in _RESPONSE:
        fill = pad_token_id if name == "responses" else 0
        tensors[name] = np.stack([_padded(row[name], right, fill) for row in rows])
    tensors["input_ids"] = np.concatenate([tensors["prompts"], tensors["responses"]], axis=1)
    tensors["attention_mask"] = np.stack([_attention(row, left, right) for row in rows])
    positions = np.cumsum(tensors["attention_mask"], axis=1) - 1
    tensors["position_ids"] = np.maximum(positions, 0)
    plain = ("uid", "rollout_id", "group_id", "sample_id", "rollout_weight", "reward")
    return tensors, {name: np.array([row[name] for row in rows], dtype=object) for name in plain}


def _padded(values: Any, length: int, fill: int, *, on_left: bool = False) -> Array:
    given = np.asarray(values)
    missing = length - given.size
    if missing < 0:
        raise ValueError(f"a row has {given.size} values, the batch holds {length}")
    given = given.astype(np.float32 if given.dtype.kind == "f" else np.int64)
    padding = (missing, 0) if on_left else (0, missing)
    return np.pad(given, padding, constant_values=fill)


def _attention(row: Mapping[str, Any], left: int, right: int) -> Array:
    mask = np.zeros(left + right, np.int64)
    mask[left - len(row["prompts"]) : left + len(row["responses"])] = 1
    return mask
