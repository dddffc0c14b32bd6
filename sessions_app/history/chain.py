"""Keys of whole paths: each message's key is chained to the key of everything before it.

Invariant: two paths have the same chained key exactly when they have the same message keys in the same
order, so one indexed lookup over all prefixes of a request finds the deepest stored path it continues.
"""

from collections.abc import Sequence
from hashlib import blake2b

from sessions_app.history.matchers.base import KEY_BYTES, Message, MessageMatcher

EMPTY = bytes(KEY_BYTES)
"""The key of no messages."""


def chain(previous: bytes, key: bytes) -> bytes:
    """Key of a path that is one message longer; the same where that message takes no part."""
    if not key:
        return previous
    return blake2b(previous + key, digest_size=KEY_BYTES).digest()


def prefix_keys(
    matcher: MessageMatcher, messages: Sequence[Message], before: bytes | None = EMPTY
) -> list[bytes | None]:
    """The chained key of each prefix of length 1 to n; None from the first message on that has no key.

    before: the key of the path that these messages continue.
    """
    keys: list[bytes | None] = []
    path = before
    for message in messages:
        key = None if path is None else matcher.key(message)
        path = None if path is None or key is None else chain(path, key)
        keys.append(path)
    return keys
