"""Does one token sequence start with another?"""

from collections.abc import Sequence


def starts_with(ids: Sequence[int], prefix: Sequence[int]) -> bool:
    """Whether `prefix` is a prefix of `ids`; everything starts with nothing."""
    return list(ids[: len(prefix)]) == list(prefix)
