"""The sample that hooks see and may change. Everything it was made of stays frozen behind it.

A hook may replace or edit any public attribute; arrays may be replaced by lists. What leaves the hooks is
checked by `hooks.run` (lengths) and by the codec (value ranges), and proven token by token for native rows
(`proof`).
"""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sessions_app.packing import Ids
from trainer_export.samples.values import JsonObject, Leaf, Speculative, Status

Mask = npt.NDArray[np.uint8]
Rows = npt.NDArray[np.int32]
"""Replay rows, shape (tokens - 1, layers, k)."""


@dataclass(slots=True)
class PrefixCacheInfo:
    """How much of the prompts the engine found in its cache, summed over the turns."""

    cached_tokens: int = 0
    total_prompt_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a sample ends before its path does."""

    seq: int
    """The turn that ended it: the last one kept if its status did, else the first one cut or left out."""
    reason: str
    """`truncated`, `aborted` or `pending` (the status of that turn), `replay_missing`, `max_seq_len`."""


@dataclass(frozen=True, slots=True)
class Span:
    """Where the completion of one turn stands in a sample's tokens."""

    seq: int
    start: int
    """Index of the first sampled id."""
    length: int
    """Sampled ids that are in the sample; the turn may have had more (trimmed or cut)."""


@dataclass(slots=True, eq=False)
class Sample:
    """One training row in the making. Compared by identity."""

    tokens: Ids
    response: str
    """Text from the first completion on; observations between completions included."""
    response_length: int
    """Tokens from the first completion on."""
    loss_mask: Any
    """uint8 per response token (a hook may set a list): 1 = trained."""
    rollout_log_probs: Any
    """float64 per response token; 0.0 where nothing was sampled."""
    status: Status
    weight_versions: list[Any]
    """One per merged turn whose engine reported one."""
    prefix_cache_info: PrefixCacheInfo
    metadata: JsonObject
    leaf: Leaf
    """The whole path this sample was made of, also where the sample ends earlier."""
    spans: tuple[Span, ...]
    """One per merged turn."""
    reward: Any = None
    rollout_routed_experts: Rows | None = None
    rollout_indexer_topk: Rows | None = None
    spec_info: Speculative | None = None
    stop: Stop | None = None

    @property
    def response_start(self) -> int:
        """Index of the first response token in `tokens`."""
        return len(self.tokens) - self.response_length

    def fresh(self, leaf: Leaf) -> "Sample":
        """An independent copy for hooks to change, with the leaf as it stands now (its siblings may have
        grown)."""
        return Sample(
            tokens=self.tokens,
            response=self.response,
            response_length=self.response_length,
            loss_mask=np.array(self.loss_mask),
            rollout_log_probs=np.array(self.rollout_log_probs),
            status=self.status,
            weight_versions=list(self.weight_versions),
            prefix_cache_info=copy.copy(self.prefix_cache_info),
            metadata=_copy_json(self.metadata),
            leaf=leaf,
            spans=self.spans,
            reward=self.reward,
            rollout_routed_experts=self.rollout_routed_experts,
            rollout_indexer_topk=self.rollout_indexer_topk,
            spec_info=self.spec_info,
            stop=self.stop,
        )


def _copy_json(value: Any) -> Any:
    """A deep copy of JSON; arrays (read-only) are shared."""
    if isinstance(value, dict):
        return {key: _copy_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copy_json(item) for item in value]
    return value
