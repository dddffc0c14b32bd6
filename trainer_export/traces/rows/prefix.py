"""Does one token sequence start with another?"""

from collections.abc import Sequence


def starts_with(ids: Sequence[int], prefix: Sequence[int]) -> bool:
    """Whether `prefix` is a prefix of `ids`; everything starts with nothing."""
    return list(ids[: len(prefix)]) == list(prefix)


def first_difference(ids: Sequence[int], prefix: Sequence[int]) -> int | None:
    """The first position where `ids` leaves `prefix`; None when it does not."""
    for position, (ours, theirs) in enumerate(zip(ids, prefix, strict=False)):
        if ours != theirs:
            return position
    return None if len(ids) >= len(prefix) else len(ids)
