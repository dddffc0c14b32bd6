"""A family's own way to go on: its `bridge_to_next_turn`, given the last turn and a short piece before it.

Invariant: it never sees more of the history, so that its cost does not grow with it, and no more than
`MOST_TRIMMED` of the served ids are dropped.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sessions_app.rendering.package.messages import package_messages
from sessions_app.rendering.preparation import wrapped_tools
from sessions_app.rendering.protocol import Extension, Ids, Message, RendererRefused, Tool
from sessions_app.rendering.tokenizer import ids_array

MOST_TRIMMED = 1
_REFUSED = "renderer_refused"
_LEFT_OF_TURN = 64
"""Ids in front of the generation prompt that the bridge gets to see."""


class FamilyBridge:
    """The bridge of one family under one set of kwargs."""

    def __init__(self, inner: Any, name: str, header: Ids, stops: frozenset[int]) -> None:
        """`header`: the ids that open an assistant turn both in a prompt and inside a history."""
        self._inner = inner
        self._name = name
        self._header = header
        self._stops = stops

    def over(self, served: Ids, new: Sequence[Message], tools: Sequence[Tool] | None) -> Extension:
        """What it adds behind the last turn. Raises RendererRefused where it gives up."""
        start = self._start_of_turn(served)
        left = served[max(0, start - self._header.size - _LEFT_OF_TURN) : start].tolist()
        turn = served[start:].tolist()
        if self._stops.intersection(turn[:-1]) and turn[-1] not in self._stops:
            raise RendererRefused(_REFUSED, "the engine handed on what follows the stop token")
        return self._extension([*left, *turn], self._bridged(left, turn, new, tools))

    def _start_of_turn(self, served: Ids) -> int:
        """Where the last completion begins: behind the last header."""
        size = self._header.size
        starts = np.flatnonzero(served == self._header[0]) if size else ()
        for position in reversed(starts):
            if np.array_equal(served[position : position + size], self._header):
                return int(position) + size
        raise RendererRefused(_REFUSED, f"{self._name}: the last turn cannot be found")

    def _bridged(
        self, left: list[int], turn: list[int], new: Sequence[Message], tools: Sequence[Tool] | None
    ) -> Any:
        prepared = package_messages(new)
        try:
            bridged = self._inner.bridge_to_next_turn(left, turn, prepared, tools=wrapped_tools(tools))
        except Exception as error:
            raise RendererRefused(_REFUSED, f"{self._name}: {type(error).__name__}") from error
        if bridged is None:
            raise RendererRefused(_REFUSED, f"{self._name} cannot continue this turn")
        return bridged

    def _extension(self, before: list[int], bridged: Any) -> Extension:
        """Ids behind what the bridge kept; those that belong to no new message are the glue."""
        ids = list(bridged.token_ids)
        kept = common_ids(before, ids)
        trim = len(before) - kept
        if trim > MOST_TRIMMED:
            raise RendererRefused(_REFUSED, f"{self._name} would drop {trim} served tokens")
        owners = list(bridged.message_indices)[kept:]
        glue = next((index for index, owner in enumerate(owners) if owner >= 0), 0)
        return Extension(trim, ids_array(ids[kept : kept + glue]), ids_array(ids[kept + glue :]))


def common_ids(left: Sequence[int], right: Sequence[int]) -> int:
    """Length of the longest common prefix."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(left), len(right)))
