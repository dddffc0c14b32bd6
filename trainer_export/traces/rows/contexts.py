"""What calls ended with, to be asked which of it a later prompt goes on from.

Every context is tried, not the preceding one alone. Invariant: asking costs what the prompt is long, however
many contexts there are; looking for the closest one costs that for each open branch.
"""

from collections.abc import Iterator, Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.int64]


class Contexts:
    """Contexts by number. An empty one is none: everything would go on from it."""

    def __init__(self) -> None:
        self._holders: dict[int, dict[bytes, dict[int, None]]] = {}

    def add(self, number: int, context: Sequence[int]) -> None:
        """Something that later prompts may start with."""
        if context:
            holders = self._holders.setdefault(len(context), {})
            holders.setdefault(_digest(as_array(context)), {})[number] = None

    def forget(self, number: int, context: Sequence[int]) -> None:
        """Take one out."""
        holders = self._holders.get(len(context), {})
        digest = _digest(as_array(context))
        if number in holders.get(digest, ()):
            del holders[digest][number]
            if not holders[digest]:
                del holders[digest]
            if not holders:
                del self._holders[len(context)]

    def continued_by(self, prompt: Sequence[int]) -> int | None:
        """The longest context that the prompt starts with; of equal ones the first."""
        found = None
        for length, digest in _digests(as_array(prompt), sorted(self._holders)):
            found = next(iter(self._holders[length].get(digest, ())), found)
        return found


class OpenBranches:
    """The ends of branches, each open until somebody goes on from it."""

    def __init__(self) -> None:
        self._contexts = Contexts()
        self._ends: dict[int, Array] = {}

    def add(self, number: int, context: Sequence[int]) -> None:
        """A branch ends here."""
        self._contexts.add(number, context)
        self._ends[number] = as_array(context)

    def close(self, number: int) -> None:
        """The branch does not end there any more."""
        end = self._ends.pop(number, None)
        if end is not None:
            self._contexts.forget(number, end.tolist())

    def continued_by(self, prompt: Sequence[int]) -> int | None:
        """See Contexts."""
        return self._contexts.continued_by(prompt)

    def closest(self, prompt: Sequence[int]) -> list[int] | None:
        """The end that shares the most ids with a prompt; None where there is no branch."""
        ids = as_array(prompt)
        best = max(self._ends.values(), key=lambda end: _shared(ids, end), default=None)
        return None if best is None else best.tolist()


def as_array(ids: Sequence[int]) -> Array:
    """Ids in a form that is compared fast."""
    return np.asarray(ids, dtype=np.int64)


def _digest(ids: Array) -> bytes:
    return blake2b(ids.tobytes()).digest()


def _digests(ids: Array, lengths: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """Of the beginnings of these lengths, shortest first."""
    hasher, done = blake2b(), 0
    for length in lengths:
        if length > ids.size:
            return
        hasher.update(ids[done:length].tobytes())
        done = length
        yield length, hasher.copy().digest()


def _shared(ids: Array, other: Array) -> int:
    """How many ids both start with."""
    length = min(ids.size, other.size)
    differs = ids[:length] != other[:length]
    first = int(differs.argmax()) if length else 0
    return first if length and differs[first] else length
