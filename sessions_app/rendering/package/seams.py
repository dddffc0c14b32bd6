"""How a family's turns close and go on, read off its own renders of a short dummy conversation.

What the bridge of a family cannot do, or does otherwise than the family renders, is done from here.
Invariant: the real history is never rendered; ids behind the dummy turn are taken as the family made them.
"""

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from sessions_app.errors import TemplateError
from sessions_app.rendering.dummy import OPENINGS, SENTINEL, calls_of, standing_for
from sessions_app.rendering.protocol import Ids, Message, RendererRefused, Tool
from sessions_app.rendering.tokenizer import ids_array

_MOST_KINDS = 256

Rendered = Callable[[Sequence[Message], Sequence[Tool] | None, bool], list[int]]
"""Messages, tools, whether to add a generation prompt."""
Decode = Callable[[Sequence[int]], str]


@dataclass(frozen=True, slots=True)
class _Told:
    """A dummy turn that nothing follows."""

    opening: tuple[Message, ...]
    """The dummy history in front of it."""
    head: list[int]
    """Ids up to the end of the sentinel."""
    tail: list[int]
    """What stands behind it: the rest of a call, and the close."""
    inside: list[int]
    """The same where a generation prompt follows: some families close their last turn otherwise."""


class FamilySeams:
    """The seams of one family under one set of kwargs; thread-safe."""

    def __init__(
        self, rendered: Rendered, decode: Decode, stops: frozenset[int], prompt: Sequence[int]
    ) -> None:
        """`prompt`: the ids of a generation prompt."""
        self._rendered = rendered
        self._decode = decode
        self._stops = stops
        self._prompt = list(prompt)
        self._known: dict[tuple[object, ...], _Told] = {}
        self._lock = threading.Lock()

    def between(
        self,
        last_message: Message,
        new: Sequence[Message],
        tools: Sequence[Tool] | None,
        *,
        cut: bool = False,
    ) -> tuple[Ids, Ids]:
        """The close of a turn like this one, and what these messages and a generation prompt add behind it.
        Where a turn of text was cut, with what the family prints in front of the stop token.

        Raises RendererRefused where the new messages change how the turn or what it answers is printed.
        """
        turn = standing_for(last_message)
        told = self._told(turn, tools)
        try:
            whole = self._rendered([*told.opening, turn, *new], tools, True)
        except TemplateError as error:
            raise RendererRefused("template_not_append_only", str(error)) from error
        behind = self._behind_turn(told, whole)
        start, end = self._close_in(told, behind)
        if cut and not calls_of(last_message):
            start = 0
        return ids_array(behind[start:end]), ids_array(behind[end:])

    def _told(self, turn: Message, tools: Sequence[Tool] | None) -> _Told:
        kind = (*(name for name, _ in calls_of(turn)), _digest(tools))
        with self._lock:
            told = self._known.get(kind)
        if told is None:
            told = self._learnt(turn, tools)
            with self._lock:
                if len(self._known) >= _MOST_KINDS:
                    self._known.pop(next(iter(self._known)))
                self._known[kind] = told
        return told

    def _learnt(self, turn: Message, tools: Sequence[Tool] | None) -> _Told:
        problem = ""
        for opening in OPENINGS:
            try:
                ids = self._rendered([*opening, turn], tools, False)
            except TemplateError as error:
                problem = problem or str(error)
                continue
            if (end := self._end_of_sentinel(ids)) is not None:
                head, tail = ids[:end], ids[end:]
                return _Told(opening, head, tail, self._inside([*opening, turn], tools, head) or tail)
        raise RendererRefused("close_unresolved", f"the close of a turn cannot be told apart: {problem}")

    def _inside(self, messages: list[Message], tools: Sequence[Tool] | None, head: list[int]) -> list[int]:
        """What stands between the turn and a generation prompt; [] where that cannot be told."""
        try:
            ids = self._rendered(messages, tools, True)
        except TemplateError:
            return []
        end = len(ids) - len(self._prompt)
        known = self._prompt and ids[: len(head)] == head and ids[end:] == self._prompt
        return ids[len(head) : end] if known else []

    def _behind_turn(self, told: _Told, whole: list[int]) -> list[int]:
        if whole[: len(told.head)] == told.head:
            return whole[len(told.head) :]
        end = self._end_of_sentinel(whole)
        if end is None:
            raise RendererRefused(
                "template_not_append_only", "new messages change how the last turn is printed"
            )
        return whole[end:]

    def _end_of_sentinel(self, ids: list[int]) -> int | None:
        """How many ids it takes to spell the sentinel; None where its end is inside a token, or nowhere."""
        low, high = 0, len(ids)
        if SENTINEL not in self._decode(ids):
            return None
        while low < high:
            middle = (low + high) // 2
            if SENTINEL in self._decode(ids[:middle]):
                high = middle
            else:
                low = middle + 1
        return low if self._decode(ids[:low]).endswith(SENTINEL) else None

    def _close_in(self, told: _Told, behind: list[int]) -> tuple[int, int]:
        """Where the close begins and ends among the ids behind the sentinel: from the stop token to where a
        turn that nothing follows ends. Families whose stop token opens the next message have none."""
        start = next((at for at, number in enumerate(told.tail) if number in self._stops), len(told.tail))
        if behind[: len(told.tail)] == told.tail:
            return start, len(told.tail)
        if start < len(told.tail) and behind[: start + 1] == told.tail[: start + 1]:
            return start, start + 1
        if start < len(told.inside) and behind[: len(told.inside)] == told.inside:
            return start, len(told.inside)
        raise RendererRefused("close_unresolved", "a turn ends differently when something follows")


def _digest(tools: Sequence[Tool] | None) -> bytes:
    if not tools:
        return b""
    return blake2b(json.dumps(tools, default=repr).encode(), digest_size=16).digest()
