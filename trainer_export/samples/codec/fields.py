"""The tensors of a sample on the wire, in the order in which null ones are listed."""

from dataclasses import dataclass

import numpy as np

META = "_samples_meta"
"""Name of the tensor that holds the JSON block."""


@dataclass(frozen=True, slots=True)
class TensorField:
    """One tensor per sample, named `{name}.{index of the sample}`."""

    name: str
    dtype: type[np.generic]
    rank: int
    converts: bool
    """Lists and other number types are taken where every value survives; else the dtype must be there
    already."""


TENSOR_FIELDS = (
    TensorField("tokens", np.int64, 1, True),
    TensorField("loss_mask", np.uint8, 1, True),
    TensorField("rollout_log_probs", np.float64, 1, True),
    TensorField("rollout_routed_experts", np.int32, 3, False),
    TensorField("rollout_indexer_topk", np.int32, 3, False),
)
