"""The context digest tells every difference in what the engine was shown or sampled."""

import numpy as np
import pytest

from sessions_app.history.context import DIGEST_BYTES, ROOT, context_digest
from sessions_app.packing import Ids


def ids(*values: int) -> Ids:
    return np.array(values, dtype=np.int32)


def test_equal_inputs_give_equal_digests_of_sixteen_bytes():
    first = context_digest(ROOT, 0, ids(1, 2), ids(3))
    assert first == context_digest(ROOT, 0, ids(1, 2), ids(3))
    assert len(first) == DIGEST_BYTES == 16


@pytest.mark.parametrize(
    "other",
    [
        (b"\0" * 16, 0, ids(1, 2), ids(3)),
        (ROOT, 1, ids(1, 2), ids(3)),
        (ROOT, 0, ids(1), ids(2, 3)),
        (ROOT, 0, ids(1, 2, 3), ids()),
        (ROOT, 0, ids(1, 2), ids(4)),
        (ROOT, 0, ids(2, 1), ids(3)),
        (ROOT, 0, ids(1, 2), ids(3, 0)),
    ],
)
def test_any_difference_in_parent_trim_borders_or_ids_shows(other):
    assert context_digest(*other) != context_digest(ROOT, 0, ids(1, 2), ids(3))


def test_layout_of_the_arrays_in_memory_does_not_matter():
    strided = np.arange(20, dtype=np.int32)[::2]
    big_endian = strided.astype(">i4")
    assert context_digest(ROOT, 0, strided, ids()) == context_digest(ROOT, 0, strided.copy(), ids())
    assert context_digest(ROOT, 0, big_endian, ids()) == context_digest(ROOT, 0, strided.copy(), ids())
