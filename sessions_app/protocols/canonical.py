"""Canonical messages made of another protocol's, and the client's own spelling beside them.

Invariant: whatever a client's message said stands in its canonical messages or beside the first of them;
texts are made only for messages that are looked at, so a matched history costs little here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sessions_app.json_text import loads, text_of
from sessions_app.store.values import PathMessage

Told = Callable[[PathMessage], Sequence[list[Any]]]
"""How a protocol tells a stored reply to its clients, in each of the forms it may have."""


@dataclass(frozen=True, slots=True)
class Own:
    """Something the client sent."""

    value: Any
    text: Callable[[], str]
    """JSON text of it."""


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
        texts = [each.text() for each in own]
        if not texts or texts == [text_of(self._messages[index].message)]:
            raise KeyError(index)
        return "[" + ",".join(texts) + "]"

    def __iter__(self) -> Iterator[int]:
        return (index for index in range(len(self._messages)) if index in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class OwnSpelling:
    """See turns.values.OwnSpelling."""

    def __init__(
        self,
        protocol: str,
        messages: Sequence[Canonical],
        told: Told,
        fixed: Callable[[Any], Any] = lambda value: value,
    ) -> None:
        """`fixed`: what the client sent without what moves from request to request."""
        self._messages, self._told, self._fixed = messages, told, fixed
        self.values = [self._stands_for(protocol, each) for each in messages]

    def _stands_for(self, protocol: str, said: Canonical) -> Any:
        """The message itself where the client spelled it so: then it is the same in every protocol."""
        fixed = [self._fixed(own.value) for own in said.own]
        return said.message if fixed == [said.message] else [protocol, fixed]

    def beyond(self, index: int, stored: PathMessage | None) -> str | None:
        """See turns.values.OwnSpelling."""
        own = self._messages[index].own
        if not own:
            return None
        mine = text_of([self._fixed(each.value) for each in own])
        if stored is not None and any(text_of(theirs) == mine for theirs in self._stored(stored)):
            return None
        return "[" + ",".join(each.text() for each in own) + "]"

    def _stored(self, stored: PathMessage) -> Iterator[list[Any]]:
        if stored.sidecar is not None:
            yield [self._fixed(value) for value in loads(stored.sidecar.encode())]
            return
        body = loads(stored.body.encode())
        yield [body]
        if stored.generated:
            yield from self._told(stored)
