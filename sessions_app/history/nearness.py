"""How near a request comes to a stored path, for choosing the one that tells why it does not continue it.

Invariant: pure, and only an order: no attach point depends on it. A request sent twice leaves two replies;
whoever goes on from one of them, respelled, is to be compared with that one. Its calls still have their ids.
"""

from collections.abc import Sequence

from sessions_app.history.matchers.base import Message, MessageMatcher
from sessions_app.history.matchers.values import equal, present
from sessions_app.history.walk import match_length

Nearness = tuple[int, bool, int]
"""Leading messages that are the same; of the first pair that differs whether its calls have the same ids, and
how many parts are equal. Greater is nearer.
"""
_PARTS = ("role", "content", "reasoning_content", "tool_calls")


def nearness(stored: Sequence[Message], replayed: Sequence[Message], matcher: MessageMatcher) -> Nearness:
    """How near the request `replayed` comes to `stored`, both from the same place on."""
    shared = match_length(stored, replayed, matcher)
    if shared == min(len(stored), len(replayed)):
        return shared, False, 0
    one, other = stored[shared], replayed[shared]
    ids = _call_ids(one)
    parts = sum(equal(present(one.get(part)), present(other.get(part))) for part in _PARTS)
    return shared, bool(ids) and ids == _call_ids(other), parts


def _call_ids(message: Message) -> list[str]:
    calls = message.get("tool_calls")
    named = [call.get("id") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return [one for one in named if isinstance(one, str) and one]
