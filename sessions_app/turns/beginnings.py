"""What a process knows of the beginning of a session's next request: most of it was the last one.

Each request repeats its history, so keys and digest of the repeated messages are taken over and only the new
ones are read. What is known is a pure function of the messages, found again by a digest that tells all values
apart (NaN from null, 1 from 1.0, one order of keys from another).
Invariant: without this memory every answer is the same, only slower.
"""

import marshal
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from uuid import UUID

from sessions_app.history.chain import prefix_keys
from sessions_app.history.matchers.base import MessageMatcher
from sessions_app.json_text import dumps
from sessions_app.turns.positioning import History

_DIGEST_BYTES = 16
_FORMAT = 2
"""Of marshal: the last one in which equal values are always equal bytes."""
_HEADER_BYTES = 5
"""A list's mark and length; behind it stands one message after the other."""
_KEPT_KEYS = 150_000
"""Of all sessions together; about 70 bytes each."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """Digests over a request's messages with their key order, so that respelled histories are told apart."""

    digest: bytes
    """Of all messages."""
    known: int
    """Leading messages that were in the session's last request, spelled the same."""
    known_digest: bytes
    """Of these."""

    def of_leading(self, spelled: list[Any], count: int) -> bytes:
        """Of the first `count` messages of the request."""
        return self.known_digest if count == self.known else spelling_digest(spelled[:count])


@dataclass(frozen=True, slots=True)
class Read:
    """A request's messages as far as attaching needs them."""

    history: History
    spelling: Spelling | None
    """None where the messages are too deep to be written: storing them will say so."""


@dataclass(frozen=True, slots=True)
class _Beginning:
    size: int
    """Bytes of the messages as marshalled."""
    digest: bytes
    matcher: MessageMatcher
    keys: Sequence[bytes | None]


class Beginnings:
    """One for each session; those unused longest are forgotten. Used from one event loop."""

    def __init__(self) -> None:
        self._known: OrderedDict[UUID, _Beginning] = OrderedDict()
        self._keys = 0

    def read(
        self,
        session_id: UUID,
        messages: list[dict[str, Any]],
        matcher: MessageMatcher,
        own: list[Any] | None = None,
    ) -> Read:
        """Keys and spelling of a request's messages. Raises what the matcher raises.

        `own`: what tells the client's spellings apart, one for each message, where the messages do not.
        """
        try:
            spelled = _spelled(messages if own is None else own)
        except ValueError:
            return Read(History.of(messages, matcher), None)
        known = self._known.get(session_id)
        split = known.size if known is not None and known.size <= len(spelled) else 0
        state = sha256(spelled[:split])
        leading = state.digest()[:_DIGEST_BYTES]
        repeated = known.keys if known is not None and split and leading == known.digest else ()
        state.update(spelled[split:])
        digest = state.digest()[:_DIGEST_BYTES]
        taken = repeated if known is not None and known.matcher is matcher else ()
        keys = [*taken, *prefix_keys(matcher, messages[len(taken) :], *taken[-1:])]
        self._remember(session_id, _Beginning(len(spelled), digest, matcher, keys))
        return Read(History(messages, matcher, keys), Spelling(digest, len(repeated), leading))

    def forget(self, session_id: UUID) -> None:
        """Drop what is known of a session."""
        known = self._known.pop(session_id, None)
        self._keys -= len(known.keys) if known else 0

    def _remember(self, session_id: UUID, beginning: _Beginning) -> None:
        self.forget(session_id)
        if not beginning.keys:
            return
        self._known[session_id] = beginning
        self._keys += len(beginning.keys)
        while self._keys > _KEPT_KEYS:
            self._keys -= len(self._known.popitem(last=False)[1].keys)


def spelling_digest(messages: list[Any]) -> bytes:
    """16 bytes over messages as they are spelled. Raises InvalidJson on messages too deep to be stored."""
    try:
        spelled = _spelled(messages)
    except ValueError:
        spelled = memoryview(dumps(messages))
    return sha256(spelled).digest()[:_DIGEST_BYTES]


def _spelled(messages: list[Any]) -> memoryview:
    """Bytes that are equal exactly for equal messages, values told apart by type; those of a few messages
    begin those of more. Raises ValueError on what is too deep.
    """
    return memoryview(marshal.dumps(messages, _FORMAT))[_HEADER_BYTES:]
