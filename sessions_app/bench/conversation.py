"""What one agent says: user messages of a wanted number of tokens, and its whole history each turn."""

import itertools
from collections.abc import Sequence
from functools import lru_cache

import orjson

from sessions_app.backends.demo.echo import text_of_tokens

AROUND = 9
"""Tokens that the demo template puts around a user message, generation prompt included."""
_STARTS = itertools.count()
_LONG = 10_000
"""Tokens of a message that is made once: making one holds up the agents beside it."""


class Conversation:
    """The messages so far, each already JSON. A new message is added by `ask`, a reply by `answered`."""

    def __init__(self, words: Sequence[str], max_tokens: int) -> None:
        self._words = words
        self._head = b'{"model":"demo","max_tokens":%d,"messages":[' % max_tokens
        self._messages: list[bytes] = []

    def ask(self, tokens: int) -> bytes:
        """The body of the next request, whose new message adds this many tokens to the prompt."""
        start = next(_STARTS) % len(self._words) if tokens < _LONG else 0
        self._messages.append(_user_message(tuple(self._words), max(1, tokens - AROUND), start))
        return self._head + b",".join(self._messages) + b"]}"

    @property
    def size(self) -> int:
        """Bytes of the messages so far."""
        return sum(map(len, self._messages))

    def answered(self, reply: bytes) -> None:
        """Take the assistant's message of a chat reply into the history."""
        self._messages.append(orjson.dumps(orjson.loads(reply)["choices"][0]["message"]))


@lru_cache(512)
def _user_message(words: tuple[str, ...], tokens: int, start: int) -> bytes:
    return orjson.dumps({"role": "user", "content": text_of_tokens(words, tokens, start)})
