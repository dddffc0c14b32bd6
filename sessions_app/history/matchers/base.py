"""What a message matcher is: are a stored and a replayed message the same?

A matcher decides identity only. On a match the stored message and the stored tokens stay authoritative;
what the client replayed never reaches the engine. Invariant: wherever `key` is not None for both messages,
`key(a) == key(b)` exactly when `matches(a, b)`.
"""

from collections.abc import Mapping
from typing import Any, Protocol

Message = Mapping[str, Any]

KEY_BYTES = 16


class MessageMatcher(Protocol):
    """Stateless; called as matches(stored, replayed) for each position."""

    name: str
    """Built-in name or dotted path."""

    def matches(self, stored: Message, replayed: Message) -> bool:
        """Whether the replayed message is the stored one. Raises MatcherRaised or MatcherContract only."""
        ...

    def key(self, message: Message) -> bytes | None:
        """16 bytes that stand for the predicate, or None where no key can: the caller walks the paths.

        Empty for a message that takes no part (see history.passing).
        """
        ...
