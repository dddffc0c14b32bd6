"""Canonical messages made of another protocol's, and the client's own spelling beside them.

Invariant: whatever a client's message said stands in its canonical messages or in the sidecar of the first of
them; texts are made only for messages that are looked at, so a matched history costs nothing here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sessions_app.json_text import text_of

Own = Callable[[], str]
"""JSON text of something the client sent."""


@dataclass(frozen=True, slots=True)
class Canonical:
    """One canonical message."""

    message: dict[str, Any]
    own: tuple[Own, ...] = ()
    """What the client sent for it; empty where an earlier canonical message of the same source has it."""


class CanonicalTexts:
    """See Texts: the canonical spelling."""

    def __init__(self, messages: Sequence[Mapping[str, Any]]) -> None:
        self._messages = messages

    def text(self, index: int) -> str:
        """JSON text of one message."""
        return text_of(self._messages[index])


class Sidecars(Mapping[int, str]):
    """The client's own messages by canonical index, as a JSON list; none where both spellings are one."""

    def __init__(self, messages: Sequence[Canonical]) -> None:
        self._messages = messages

    def __getitem__(self, index: int) -> str:
        own = self._messages[index].own
        texts = [each() for each in own]
        if not texts or texts == [text_of(self._messages[index].message)]:
            raise KeyError(index)
        return "[" + ",".join(texts) + "]"

    def __iter__(self) -> Iterator[int]:
        return (index for index in range(len(self._messages)) if index in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)
