"""What has to be as long as what, for the checks of shapes."""

from collections.abc import Iterator

import numpy as np

from trainer_export.shapes.base import Row


def response_lengths(row: Row, length: int, mask: str, logprobs: str) -> Iterator[str]:
    """Mask and logprobs count the response; the mask holds 0 and 1 only."""
    for name in (mask, logprobs):
        if len(row[name]) != length:
            yield f"{name} has {len(row[name])} values, the response has {length}"
    if not np.isin(np.asarray(row[mask]), (0, 1)).all():
        yield f"{mask} holds other values than 0 and 1"
    if not np.isfinite(np.asarray(row[logprobs], np.float64)).all():
        yield f"{logprobs} are not all finite"
