"""Served ids and what follows them: nothing of a close or an opener is doubled, nothing is lost.

Pure. The block to append is the template's close of the turn and the delta behind it; the served end may hold
any part of the close, another stop token in its place, or the opener of the next message.
"""

from dataclasses import dataclass

import numpy as np

from sessions_app.rendering.protocol import Extension, Ids
from sessions_app.rendering.tokenizer import ids_array

_MOST_OPENER_IDS = 4
"""Leading marks of a delta that may have been served already."""
_NOTHING = ids_array([])


@dataclass(frozen=True, slots=True)
class Joint:
    """How one template's turns end."""

    marks: frozenset[int]
    """Ids that are never part of text."""
    stops: frozenset[int]
    closers: frozenset[int]
    """Ids that close a turn, of whatever kind."""
    openers: frozenset[int]
    """Ids that open the next message and are the stop tokens where a turn has no close."""

    def join(self, served: Ids, glue: Ids, delta: Ids) -> Extension:
        """What is left to add."""
        shared = overlap(served, np.concatenate([glue, delta]), glue.size + self._leading_marks(delta))
        if shared:
            return Extension(0, glue[shared:], delta[max(0, shared - glue.size) :])
        last = int(served[-1]) if served.size else -1
        if last in self.openers:
            return self._after_opener(last, glue, delta)
        return Extension(0, glue[self._standing_in(last, glue) :], delta)

    def _leading_marks(self, delta: Ids) -> int:
        marks = 0
        for number in delta[:_MOST_OPENER_IDS].tolist():
            if number not in self.marks:
                break
            marks += 1
        return marks

    @staticmethod
    def _after_opener(last: int, glue: Ids, delta: Ids) -> Extension:
        """The turn ended with an opener: the right one is kept as sampled, a wrong one gives way."""
        if delta.size and int(delta[0]) == last:
            return Extension(0, _NOTHING, delta[1:])
        return Extension(1, glue, delta)

    def _standing_in(self, last: int, glue: Ids) -> int:
        """How many ids of the close a served stop token stands for: those up to itself, or, where the
        template closes other kinds of turns with it, those up to the close token of this kind."""
        numbers = glue.tolist()
        if last in self.stops and last in numbers:
            return numbers.index(last) + 1
        if last in self.closers:
            return next((index + 1 for index, number in enumerate(numbers) if number in self.closers), 0)
        return 0


def overlap(served: Ids, block: Ids, limit: int | None = None) -> int:
    """Length of the longest prefix of `block` (of at most `limit` ids) that `served` ends with."""
    most = min(served.size, block.size if limit is None else limit)
    tail, front = served[served.size - most :].tolist(), block[:most].tolist()
    for length in range(most, 0, -1):
        if tail[most - length :] == front[:length]:
            return length
    return 0
