"""With which turn of a path drift appears: the path up to it drifts, the path up to the turn before does not.

Found by halving, in a few renders whatever the length. Where drift came, went and came again it is one of the
turns with which it came.
"""

from collections.abc import Callable


def appears_at(turns: int, drifts: Callable[[int], bool]) -> int:
    """Index of the turn, of `turns` that drift in all. `drifts`: whether the path up to an index does."""
    clean, drifting = -1, turns - 1
    while drifting - clean > 1:
        middle = (clean + drifting) // 2
        if drifts(middle):
            drifting = middle
        else:
            clean = middle
    return drifting
